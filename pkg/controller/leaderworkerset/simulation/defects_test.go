// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// enough is the number of histories in which a defect must show. Most show in the first few.
const enough = 5_000

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	histories.ShowDefects(t, enough, map[string]simulation.Defect[mutant]{
		"failed passes that are not tried again":           {Mutant: mutant{decide: plan.Decide, finish: plan.Finish, careless: true}, Rules: []string{ruleIs, ruleWake, ruleRestarts}},
		"denied children that are asked for too early":     {Mutant: mutant{decide: plan.Decide, finish: plan.Finish, hurried: true}, Rules: []string{simulation.RuleDeniedChild, simulation.RuleDeniedObject}},
		"a status that overwrites what users did":          {Mutant: mutant{decide: plan.Decide, finish: plan.Finish, overwriting: true}, Rules: []string{ruleMonotonic, ruleRestarts}},
		"a controller that does not count lost pods":       {Mutant: mutant{decide: plan.Decide, finish: plan.Finish, blind: true}, Rules: []string{ruleRestarts}, First: 1_384},
		"a leader that is deleted before it is recorded":   {Mutant: deciding(nil, hasty), Rules: []string{ruleRecorded, ruleCommit}},
		"a leader that is deleted again and again":         {Mutant: deciding(stillThere, nil), Rules: []string{ruleOnce, ruleCounted, ruleRecorded}},
		"a restart that counts at each pass":               {Mutant: deciding(nil, countAgain), Rules: []string{ruleCounted, ruleMonotonic, ruleLimit}},
		"a limit that is ignored":                          {Mutant: deciding(unlimited, nil), Rules: []string{ruleLimit}, First: 1_946},
		"restarts of containers that are ignored":          {Mutant: deciding(neverRestarted, nil), Rules: []string{ruleRestarts}},
		"a requested restart that is dropped":              {Mutant: deciding(nil, dropRequest), Rules: []string{ruleRestarts, ruleRequested}},
		"a requested restart that ends too early":          {Mutant: deciding(nil, endRequest), Rules: []string{ruleRequested, ruleRestarts}},
		"workers of the current revision for old groups":   {Mutant: deciding(nil, modernWorkers), Rules: []string{ruleMixed}},
		"a partition that moves to the end at once":        {Mutant: deciding(nil, rushed), Rules: []string{ruleUnavailable}},
		"a partition that goes back":                       {Mutant: deciding(nil, back), Rules: []string{rulePartition}},
		"a partition that never moves":                     {Mutant: deciding(nil, stuck), Rules: []string{ruleWake, ruleIs, ruleRest}},
		"a leader statefulset that is applied each time":   {Mutant: deciding(func(o *plan.Observed) { o.Applied = "" }, nil), Rules: []string{ruleWake, ruleRest}},
		"revisions that are never deleted":                 {Mutant: deciding(nil, hoard), Rules: []string{ruleBounded}},
		"services that are not made again":                 {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.CreateServices = nil }), Rules: []string{ruleIs}},
		"an end of a wait that nobody waits for":           {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.RequeueAfter = 0 }), Rules: []string{ruleIs, ruleRestarts, ruleWake}, First: 1_709},
		"a status that counts pods that are not ready":     {Mutant: deciding(allReady, nil), Rules: []string{ruleIs, ruleUnavailable}},
		"a leader statefulset that nobody restores":        {Mutant: deciding(trusting, nil), Rules: []string{ruleIs, ruleRest, ruleWake}, First: 1_667},
		"a generation that is not remembered":              {Mutant: deciding(func(o *plan.Observed) { o.AppliedGeneration = 0 }, nil), Rules: []string{ruleWake, ruleRest}},
		"an update that is held up":                        {Mutant: deciding(nil, passive), Rules: []string{ruleIs, ruleRest}},
		"an update before its time":                        {Mutant: deciding(early, nil), Rules: []string{ruleUnavailable}, First: 766},
		"too many leaders that hold up an update":          {Mutant: deciding(nil, greedy), Rules: []string{ruleUnavailable}, First: 2_845},
		"statefulsets that nobody touches":                 {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.TouchWorkers, p.TouchLeader = nil, false }), Rules: []string{ruleIs}},
		"gangs that are not made":                          {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.CreatePodGroups = nil }), Rules: []string{ruleIs}},
		"workers that go anywhere":                         {Mutant: deciding(nil, anywhere), Rules: []string{rulePlaced}},
		"a group too many":                                 {Mutant: deciding(nil, tooMany), Rules: []string{ruleSurge}},
		"a key for two templates":                          {Mutant: deciding(nil, sameKey), Rules: []string{ruleNames, ruleMixed}},
		"workers that never started taken for failures":    {Mutant: mutant{decide: deciding(everStarted, nil).decide, everStarted: true}, Rules: []string{ruleCause}, First: 6_619},
		"losses that nobody has seen":                      {Mutant: deciding(forgetBirths, nil), Rules: []string{ruleRestarts}, First: 6_507},
		"leaders of others that nobody records":            {Mutant: deciding(overlookDeleted, nil), Rules: []string{ruleRecreated}},
		"leaders of others that count at each pass":        {Mutant: deciding(evaluateAgain, nil), Rules: []string{ruleCounted}},
		"orphans that nobody adopts":                       {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.Adopt = nil }), Rules: []string{ruleAdopted, ruleIs, ruleRest}},
		"names of others without a word":                   {Mutant: mutant{decide: plan.Decide, finish: wordless}, Rules: []string{ruleVisible}},
		"revisions in use only as long as a leader exists": {Mutant: deciding(nil, tidyAway), Rules: []string{ruleIs, ruleRest, simulation.RulePasses}, First: 202},
		"a decision that changes what it sees":             {Mutant: deciding(nil, scribble), Rules: []string{ruleUntouched}},
		"a generation that is not observed":                {Mutant: deciding(nil, unobserved), Rules: []string{ruleRest, ruleWake, ruleIs}},
		"deadlines that undercut the backoff":              {Mutant: mutant{decide: plan.Decide, eager: true}, Rules: []string{simulation.RuleRefusals}, First: 8_795},
		"refusals that nobody reports":                     {Mutant: mutant{decide: plan.Decide, finish: silent}, Rules: []string{ruleVisible}},
		"refusals without a condition":                     {Mutant: mutant{decide: plan.Decide, finish: unconditional}, Rules: []string{ruleVisible}},
		"names taken since a time of another clock":        {Mutant: mutant{decide: plan.Decide, finish: unseenNames}, Rules: []string{ruleVisible}, First: 676},
		"new workers by the clock of another server":       {Mutant: deciding(unlooked, nil), Rules: []string{ruleIs}, First: 602},
		"a requested restart that compares clocks":         {Mutant: deciding(youngerStay, nil), Rules: []string{ruleRestarts}},
		"orphans of another group adopted":                 {Mutant: deciding(ageless, nil), Rules: []string{ruleForeign}},
	})
}
