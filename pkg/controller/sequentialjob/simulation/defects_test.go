// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// enough is the number of histories in which a defect must show. Most show in the first few.
const enough = 5_000

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	histories.ShowDefects(t, enough, map[string]simulation.Defect[mutant]{
		"failed passes that are not tried again":       {Mutant: mutant{decide: plan.Decide, finish: plan.Finish, careless: true}, Rules: []string{ruleIs, ruleWake}},
		"denied children that are asked for too early": {Mutant: mutant{decide: plan.Decide, finish: plan.Finish, hurried: true}, Rules: []string{simulation.RuleDeniedChild, simulation.RuleDeniedObject}},
		"a status that overwrites what users did":      {Mutant: mutant{decide: plan.Decide, finish: plan.Finish, overwriting: true}, Rules: []string{ruleMonotonic, ruleFinished}},
		"a controller that does not wait for caches":   {Mutant: mutant{decide: plan.Decide, finish: plan.Finish, forgetful: true}, Rules: []string{ruleOnce, ruleAttempt, ruleOne, ruleOrder, ruleFinalizer, ruleKept}, First: 638},
		"a child without a finalizer":                  {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.AddFinalizer = false }), Rules: []string{ruleFinalizer}},
		"a finalizer that goes too early":              {Mutant: deciding(nil, earlyEnd), Rules: []string{ruleFinalizer}},
		"a finalizer that stays":                       {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.RemoveFinalizer = false }), Rules: []string{ruleIs}},
		"suspension that is ignored":                   {Mutant: deciding(neverSuspended, nil), Rules: []string{ruleSuspended}},
		"old attempts that are taken for the current":  {Mutant: deciding(anyAttempt, nil), Rules: []string{ruleIs, ruleRest, ruleMonotonic, ruleFinished, ruleWake, ruleOne, ruleFinalizer}, First: 307},
		"old attempts that are not waited for":         {Mutant: deciding(withoutOld, nil), Rules: []string{ruleIs, ruleRest, ruleFinalizer, ruleOne}},
		"a deadline that is ignored":                   {Mutant: deciding(withoutDeadline, nil), Rules: []string{ruleIs}},
		"a queued child that is let run":               {Mutant: deciding(nil, overbearing), Rules: []string{ruleQueued}},
		"a step that is skipped":                       {Mutant: deciding(nil, skip), Rules: []string{ruleOrder, ruleRecorded, ruleIs, ruleMonotonic}},
		"an end that is taken back":                    {Mutant: deciding(unfinished, nil), Rules: []string{ruleFinished}},
		"a child before its step is stored":            {Mutant: deciding(nil, eager), Rules: []string{ruleCommit, ruleRecorded}},
		"an attempt that nobody recorded":              {Mutant: deciding(nil, misnumbered), Rules: []string{ruleRecorded}},
		"a child that is replaced while it runs":       {Mutant: deciding(nil, early), Rules: []string{ruleKept}},
		"a child that vanished and is forgotten":       {Mutant: deciding(withoutChildUID, nil), Rules: []string{ruleAttempt}},
		"a sequence that is deleted as it ends":        {Mutant: deciding(nil, hasty), Rules: []string{ruleTTL}},
		"an end of life that nobody waits for":         {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.RequeueAfter = 0 }), Rules: []string{ruleIs, ruleWake}},
		"the sequence of another controller":           {Mutant: deciding(func(o *plan.Observed) { o.SequentialJob.Spec.ManagedBy = nil }, nil), Rules: []string{ruleElsewhere}},
		"a decision that changes what it sees":         {Mutant: deciding(nil, scribble), Rules: []string{ruleUntouched}},
		"earlier pods that are not waited for":         {Mutant: mutant{decide: plan.Decide, heedless: heedless{pods: true}}, Rules: []string{ruleRuns}, First: 331},
		"earlier Jobs that are not waited for":         {Mutant: mutant{decide: plan.Decide, heedless: heedless{jobs: true}}, Rules: []string{ruleRuns}, First: 1_113},
		"what cannot be read is taken for nothing":     {Mutant: mutant{decide: plan.Decide, heedless: heedless{unknown: true}}, Rules: []string{ruleRuns}, First: 1_113},
		"deadlines that undercut the backoff":          {Mutant: mutant{decide: plan.Decide, eager: true}, Rules: []string{simulation.RuleRefusals}, First: 216},
		"time limits that act before they are stored":  {Mutant: deciding(nil, unstored(true)), Rules: []string{simulation.RuleRefusals}, First: 3_869},
		"time limits that are due before that":         {Mutant: deciding(nil, unstored(false)), Rules: []string{simulation.RulePasses}, First: 1_006_073},
		"children without labels taken for gone":       {Mutant: mutant{decide: plan.Decide, unasking: true}, Rules: []string{ruleFinalizer, ruleIs, ruleCause, ruleRuns}},
		"names of others taken for children":           {Mutant: mutant{decide: plan.Decide, greedy: true}, Rules: []string{simulation.RuleOthers}},
		"quota that is not known taken for none":       {Mutant: deciding(unknownIsMissing, nil), Rules: []string{ruleStopped}, First: 1_242},
		"Workloads that are not known taken for none":  {Mutant: deciding(unknownIsNone, nil), Rules: []string{ruleWorkload}},
		"a running child taken for gone":               {Mutant: deciding(withoutBusy, nil), Rules: []string{ruleCause}},
		"an end by the clock of another server":        {Mutant: deciding(nil, otherClock), Rules: []string{ruleTimes}},
		"refusals that nobody sees":                    {Mutant: mutant{decide: plan.Decide, finish: silent}, Rules: []string{ruleVisible}},
		"conditions whose times move":                  {Mutant: mutant{decide: plan.Decide, finish: restless}, Rules: []string{ruleConditions}},
		"an observed generation that is not stored":    {Mutant: deciding(nil, blind), Rules: []string{ruleIs, ruleMonotonic}},
	})
}

// deciding is a controller that is given something else than what is, or does something else than what is decided.
func deciding(misread func(*plan.Observed), does func(plan.Observed, *plan.Plan)) mutant {
	return mutant{decide: simulation.Deciding(plan.Decide, copied, misread, does)}
}

func earlyEnd(o plan.Observed, p *plan.Plan) {
	p.RemoveFinalizer = p.RemoveFinalizer || contains(o.SequentialJob.Finalizers, batchv1alpha1.SequentialJobFinalizer)
}

func neverSuspended(o *plan.Observed) { o.SequentialJob.Spec.Suspend = nil }

func anyAttempt(o *plan.Observed) {
	if step := helper.CurrentStep(&o.SequentialJob.Status); step != nil {
		for i := range o.Children {
			if o.Children[i].Name == step.ChildName {
				o.Children[i].Attempt = step.Attempts
			}
		}
	}
}

func withoutOld(o *plan.Observed) {
	if step := helper.CurrentStep(&o.SequentialJob.Status); step != nil {
		o.Children = slices.DeleteFunc(o.Children, func(c plan.Child) bool { return c.Attempt != step.Attempts })
	}
}

func withoutDeadline(o *plan.Observed) { o.SequentialJob.Spec.ActiveDeadlineSeconds = nil }

func overbearing(o plan.Observed, p *plan.Plan) {
	for _, c := range o.Children {
		if c.Queued && c.Suspended && c.End == "" {
			p.Suspend = append(p.Suspend, plan.SuspendPatch{ChildRef: c.ChildRef, ResourceVersion: c.ResourceVersion})
		}
	}
}

func skip(o plan.Observed, p *plan.Plan) {
	if s := p.Status; s != nil && len(s.Steps) > len(o.SequentialJob.Status.Steps) && len(s.Steps) > 1 {
		p.Status = s.DeepCopy()
		p.Status.Progress.CompletedIndices = p.Status.Progress.CompletedIndices[:len(p.Status.Progress.CompletedIndices)-1]
	}
}

func unfinished(o *plan.Observed) {
	meta.RemoveStatusCondition(&o.SequentialJob.Status.Conditions, batchv1alpha1.ConditionFailed)
	meta.RemoveStatusCondition(&o.SequentialJob.Status.Conditions, batchv1alpha1.ConditionComplete)
}

func eager(o plan.Observed, p *plan.Plan) {
	steps := helper.Steps(&o.SequentialJob.Spec)
	if p.Status == nil || len(p.Status.Steps) <= len(o.SequentialJob.Status.Steps) {
		return
	}
	index := helper.CurrentIndex(p.Status)
	p.AddFinalizer = !contains(o.SequentialJob.Finalizers, batchv1alpha1.SequentialJobFinalizer)
	p.CreateJob, p.CreateJobSet = plan.NewChild(o.SequentialJob, steps[index], 1)
}

func misnumbered(_ plan.Observed, p *plan.Plan) {
	if p.CreateJob != nil {
		p.CreateJob = p.CreateJob.DeepCopy()
		p.CreateJob.Labels[batchv1alpha1.StepAttemptKey] = "7"
	}
}

func early(o plan.Observed, p *plan.Plan) {
	for _, c := range o.Children {
		if c.Busy && !c.Deleting && o.Now.Sub(o.SequentialJob.CreationTimestamp.Time) > 10*time.Second {
			p.Delete = append(p.Delete, plan.Deletion{ChildRef: c.ChildRef})
		}
	}
}

func withoutChildUID(o *plan.Observed) {
	for i := range o.SequentialJob.Status.Steps {
		o.SequentialJob.Status.Steps[i].ChildUID = ""
	}
}

func hasty(o plan.Observed, p *plan.Plan) {
	p.DeleteSequentialJob = p.DeleteSequentialJob || helper.Finished(o.SequentialJob) != nil && o.SequentialJob.Spec.TTLSecondsAfterFinished != nil
}

func scribble(o plan.Observed, _ *plan.Plan) {
	o.SequentialJob.Spec.BackoffLimit = ptr.To(ptr.Deref(o.SequentialJob.Spec.BackoffLimit, 0) + 1)
}

func restless(o plan.Observed, p plan.Plan, r plan.Results) plan.Outcome {
	out := plan.Finish(o, p, r)
	if out.Status != nil {
		out.Status = out.Status.DeepCopy()
		for i := range out.Status.Conditions {
			out.Status.Conditions[i].LastTransitionTime = o.Now
		}
	}
	return out
}

func blind(o plan.Observed, p *plan.Plan) {
	if p.Status != nil {
		p.Status = p.Status.DeepCopy()
		p.Status.ObservedGeneration = o.SequentialJob.Status.ObservedGeneration
	}
}

func unknownIsMissing(o *plan.Observed) {
	if q := o.Queue.Value(); q.Hold != nil && !q.Hold.Admission.IsKnown() {
		q.Hold = &plan.Hold{Admission: hostplan.None[plan.Admission]()}
		o.Queue = hostplan.Of(q)
	}
}

func unknownIsNone(o *plan.Observed) {
	if q, known := o.Queue.Get(); known && !q.Workload.IsKnown() {
		q.Workload = hostplan.None[*plan.Workload]()
		o.Queue = hostplan.Of(q)
	}
}

func withoutBusy(o *plan.Observed) {
	all := len(o.Children)
	o.Children = slices.DeleteFunc(o.Children, func(c plan.Child) bool { return c.Busy && c.End == "" && !c.Deleting })
	if len(o.Children) < all { // without an answer, the decision would ask for it
		o.Unseen = hostplan.None[plan.LiveChild]()
	}
}

func otherClock(o plan.Observed, p *plan.Plan) {
	for _, c := range o.Children {
		i := helper.CurrentIndex(&o.SequentialJob.Status)
		if c.UID == plan.Current(o).UID && c.End != "" && p.Status != nil && p.Status.Steps[i].CompletionTime != nil {
			p.Status = p.Status.DeepCopy()
			p.Status.Steps[i].CompletionTime = c.EndTime
		}
	}
}

// unstored sets the deadline of a clock whose start is not stored.
func unstored(acts bool) func(plan.Observed, *plan.Plan) {
	return func(o plan.Observed, p *plan.Plan) {
		limit, status := o.SequentialJob.Spec.ActiveDeadlineSeconds, &o.SequentialJob.Status
		if limit == nil || p.Status == nil || p.Status.ActiveSince == nil || status.ActiveSince != nil {
			return
		}
		left := time.Duration(*limit-status.ActiveSeconds) * time.Second
		if p.RequeueAfter = hostplan.Sooner(p.RequeueAfter, left); acts {
			p.ActsAfter = left
		}
	}
}

func silent(o plan.Observed, p plan.Plan, r plan.Results) plan.Outcome {
	r.Error, r.Refusal = "", nil
	return plan.Finish(o, p, r)
}
