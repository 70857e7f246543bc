// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// enough is the number of histories in which a defect must show. Most show in the first few.
const enough = 5_000

// seldom are histories from which defects are looked for that show in few of them.
var seldom = map[string]uint64{
	"a limit that is ignored": 1_300, "an end of a wait that nobody waits for": 1_700, "a controller that does not count lost pods": 700,
	"too many leaders that hold up an update": 1_600, "an update before its time": 700, "losses that nobody has seen": 1_000,
}

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	for name, test := range map[string]struct {
		mutant
		wantRules []string
	}{
		"failed passes that are not tried again":         {mutant{decide: plan.Decide, finish: plan.Finish, careless: true}, []string{ruleIs, ruleWake, ruleRestarts}},
		"a status that overwrites what users did":        {mutant{decide: plan.Decide, finish: plan.Finish, overwriting: true}, []string{ruleMonotonic, ruleRestarts}},
		"a controller that does not count lost pods":     {mutant{decide: plan.Decide, finish: plan.Finish, blind: true}, []string{ruleRestarts}},
		"a leader that is deleted before it is recorded": {deciding(nil, hasty), []string{ruleRecorded, ruleCommit}},
		"a leader that is deleted again and again":       {deciding(stillThere, nil), []string{ruleOnce, ruleCounted, ruleRecorded}},
		"a restart that counts at each pass":             {deciding(nil, countAgain), []string{ruleCounted, ruleMonotonic, ruleLimit}},
		"a limit that is ignored":                        {deciding(unlimited, nil), []string{ruleLimit}},
		"restarts of containers that are ignored":        {deciding(neverRestarted, nil), []string{ruleRestarts}},
		"a requested restart that is dropped":            {deciding(nil, dropRequest), []string{ruleRestarts, ruleRequested}},
		"a requested restart that ends too early":        {deciding(nil, endRequest), []string{ruleRequested, ruleRestarts}},
		"workers of the current revision for old groups": {deciding(nil, modernWorkers), []string{ruleMixed}},
		"a partition that moves to the end at once":      {deciding(nil, rushed), []string{ruleUnavailable}},
		"a partition that goes back":                     {deciding(nil, back), []string{rulePartition}},
		"a partition that never moves":                   {deciding(nil, stuck), []string{ruleWake, ruleIs, ruleRest}},
		"a leader statefulset that is applied each time": {deciding(func(o *plan.Observed) { o.Applied = "" }, nil), []string{ruleWake, ruleRest}},
		"revisions that are never deleted":               {deciding(nil, hoard), []string{ruleBounded}},
		"services that are not made again":               {deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.CreateServices = nil }), []string{ruleIs}},
		"an end of a wait that nobody waits for":         {deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.RequeueAfter = 0 }), []string{ruleIs, ruleRestarts, ruleWake}},
		"a status that counts pods that are not ready":   {deciding(allReady, nil), []string{ruleIs, ruleUnavailable}},
		"a leader statefulset that nobody restores":      {deciding(trusting, nil), []string{ruleIs, ruleRest, ruleWake}},
		"a generation that is not remembered":            {deciding(func(o *plan.Observed) { o.AppliedGeneration = 0 }, nil), []string{ruleWake, ruleRest}},
		"an update that is held up":                      {deciding(nil, patient), []string{ruleIs, ruleRest}},
		"an update before its time":                      {deciding(impatient, nil), []string{ruleUnavailable}},
		"too many leaders that hold up an update":        {deciding(nil, greedy), []string{ruleUnavailable}},
		"statefulsets that nobody nudges":                {deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.NudgeWorkers, p.NudgeLeader = nil, false }), []string{ruleIs}},
		"gangs that are not made":                        {deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.CreatePodGroups = nil }), []string{ruleIs}},
		"workers that go anywhere":                       {deciding(nil, anywhere), []string{rulePlaced}},
		"a group too many":                               {deciding(nil, tooMany), []string{ruleSurge}},
		"a key for two templates":                        {deciding(nil, sameKey), []string{ruleNames, ruleMixed}},
		"losses that nobody has seen":                    {deciding(forgetBirths, nil), []string{ruleRestarts}},
		"a decision that changes what it sees":           {deciding(nil, scribble), []string{ruleUntouched}},
		"a generation that is not observed":              {deciding(nil, unobserved), []string{ruleRest, ruleWake, ruleIs}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.finish == nil {
				test.finish = plan.Finish
			}
			others := sets.New[string]()
			for i := range uint64(enough) {
				seed := seldom[name] + i
				_, broken := run(seed, test.mutant, nil)
				if slices.ContainsFunc(test.wantRules, func(rule string) bool { return strings.Contains(broken, strconv.Quote(rule)) }) {
					t.Logf("history %d: %s", seed, broken)
					return
				}
				others.Insert(broken)
			}
			t.Errorf("none of the rules %q was broken; other results: %.300q", test.wantRules, others.UnsortedList()[:min(len(others), 5)])
		})
	}
}
