// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// enough is the number of histories in which a defect must show. Most show in the first few.
const enough = 3_000

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	histories.ShowDefects(t, enough, map[string]simulation.Defect[mutant]{
		"owners that cannot be read count as none":   {Mutant: mutant{guessing: true}, Rules: []string{ruleReady}},
		"sizes are never read again":                 {Mutant: mutant{staleSizes: true}, Rules: []string{ruleReady}},
		"pods that are being deleted count":          {Mutant: mutant{sees: func(_ *process, p *members.Pod) { p.Terminating = false }}, Rules: []string{ruleReady}, First: 132},
		"failed pods count as running":               {Mutant: mutant{sees: failedRuns}, Rules: []string{ruleReady}},
		"pods that wait count as running":            {Mutant: mutant{sees: pendingRuns}, Rules: []string{ruleReady}},
		"succeeded pods do not count":                {Mutant: mutant{sees: succeededFailed}, Rules: []string{ruleIs}},
		"readyWhen is ignored":                       {Mutant: mutant{seesGroup: anyRunning}, Rules: []string{ruleReady}},
		"minMember is ignored":                       {Mutant: mutant{seesGroup: anySize}, Rules: []string{ruleReady}},
		"sizes that pods state are ignored":          {Mutant: mutant{sees: func(_ *process, p *members.Pod) { p.SizeLabel, p.SizeAnnotation = "", "" }}, Rules: []string{ruleReady}},
		"pods that are added do not count":           {Mutant: mutant{unaware: true}, Rules: []string{ruleReady}},
		"patches and statuses without a UID":         {Mutant: mutant{careless: true}, Rules: []string{simulation.RuleOthers}},
		"a status in a group that was recreated":     {Mutant: mutant{careless: true}, Rules: []string{ruleOf}},
		"caches are not waited for":                  {Mutant: mutant{forgetful: true}, Rules: []string{ruleAgain}},
		"a group that no cache shows yet is ignored": {Mutant: mutant{cachedGroup: true}, Rules: []string{ruleReady}},
		"labels that users remove are not put back":  {Mutant: mutant{sees: onceLabeled}, Rules: []string{ruleIs}},
		"failed passes are not tried again":          {Mutant: mutant{resigned: true}, Rules: []string{ruleIs}},
		"denied pods are patched too early":          {Mutant: mutant{hurried: true}, Rules: []string{simulation.RuleDeniedChild, simulation.RuleDeniedObject}, First: 110},
		"deadlines undercut the backoff":             {Mutant: mutant{eager: true}, Rules: []string{simulation.RuleRefusals}},
		"refusals are not reported":                  {Mutant: mutant{silent: true}, Rules: []string{ruleVisible}},
		"a status of an earlier generation":          {Mutant: mutant{status: outdated}, Rules: []string{ruleStatus}},
		"a status that is ahead":                     {Mutant: mutant{status: func(g *batchv1alpha1.PodReadinessGroup) { g.Status.Ready = g.Status.Running }}, Rules: []string{ruleStatus}},
		"a condition that does not follow":           {Mutant: mutant{status: alwaysReady}, Rules: []string{ruleOutcome}},
		"the time of readiness moves":                {Mutant: mutant{status: readyNow}, Rules: []string{ruleOutcome}},
		"the condition does not say what is refused": {Mutant: mutant{status: silent}, Rules: []string{ruleVisible, ruleRest}},
		"a status that is written in each pass":      {Mutant: mutant{seesGroup: dirty}, Rules: []string{ruleRest, ruleWrites, ruleIs, simulation.RulePasses}},
	})
}

func failedRuns(_ *process, p *members.Pod) {
	if p.Phase == plan.Failed {
		p.Phase = plan.Succeeded
	}
}

func pendingRuns(_ *process, p *members.Pod) {
	if p.Phase == plan.Pending {
		p.Phase = plan.Running
	}
}

func succeededFailed(_ *process, p *members.Pod) {
	if p.Phase == plan.Succeeded {
		p.Phase = plan.Failed
	}
}

func onceLabeled(in *process, p *members.Pod) {
	if _, was := in.labeled[p.UID]; was {
		p.Labeled = true
	}
}

func anyRunning(g *batchv1alpha1.PodReadinessGroup) *batchv1alpha1.PodReadinessGroup {
	g.Spec.ReadyWhen = batchv1alpha1.ReadyWhenRunning
	return g
}

func anySize(g *batchv1alpha1.PodReadinessGroup) *batchv1alpha1.PodReadinessGroup {
	g.Spec.MinMember = nil
	return g
}

// dirty is a status that has to be written in each pass.
func dirty(g *batchv1alpha1.PodReadinessGroup) *batchv1alpha1.PodReadinessGroup {
	g.Status.ObservedGeneration = -1
	return g
}

func outdated(g *batchv1alpha1.PodReadinessGroup) { g.Status.ObservedGeneration = 0 }

func alwaysReady(g *batchv1alpha1.PodReadinessGroup) {
	meta.FindStatusCondition(g.Status.Conditions, batchv1alpha1.ConditionReady).Status = metav1.ConditionTrue
}

func readyNow(g *batchv1alpha1.PodReadinessGroup) {
	if g.Status.ReadyTime != nil {
		g.Status.ReadyTime = &metav1.Time{Time: g.Status.ReadyTime.Add(time.Second)}
	}
}

func silent(g *batchv1alpha1.PodReadinessGroup) {
	c := meta.FindStatusCondition(g.Status.Conditions, batchv1alpha1.ConditionReady)
	c.Message, _, _ = strings.Cut(c.Message, "; the label ")
}
