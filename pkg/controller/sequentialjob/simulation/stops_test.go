// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the rules about what is stopped, and begins again.

// checkOwn checks that the controller changes nothing of others.
func (r *rules) checkOwn(child metav1.Object) {
	if strings.HasPrefix(string(child.GetUID()), "foreign") {
		r.Fail(simulation.RuleOthers, "%s (%s)", child.GetName(), child.GetUID())
	}
}

// patched checks that the controller suspends or resumes a child, or labels it, as it decided upon what was observed.
func (r *rules) patched(p *process, at plan.Observed, before, after metav1.Object) {
	r.checkOwn(before)
	was, is := view(before), view(after)
	if was.Suspended == is.Suspended {
		r.Seen["children that got their labels back"]++
		return
	}
	r.Seen["children suspended or resumed"]++
	sj := r.sequence()
	switch {
	case was.Queued && !is.Suspended:
		r.Fail(ruleQueued, "child %s", was.Name)
	case was.Queued && p.unread:
		r.Fail(ruleWorkload, "child %s", was.Name)
	case !is.Suspended || sj == nil || p.rivals || p.sender.Deposed:
	case !helper.Suspended(sj) && !helper.Suspended(at.SequentialJob) && !p.without:
		r.Fail(ruleStopped, "child %s is suspended", was.Name)
	}
}

// stepsStored checks the steps of a status of the controller.
func (r *rules) stepsStored(before, after *batchv1alpha1.SequentialJob, known bool) {
	was, is := &before.Status, &after.Status
	for i := range is.Steps {
		s := &is.Steps[i]
		if s.CompletionTime != nil && s.StartTime != nil && s.CompletionTime.Before(s.StartTime) || s.CompletionTime != nil && s.CompletionTime.After(r.Now()) {
			r.Fail(ruleTimes, "step %d starts %s and ends %s, and now it is %s", i, s.StartTime, s.CompletionTime, r.Now())
		}
		if i >= len(was.Steps) || s.Attempts <= was.Steps[i].Attempts || !known {
			continue
		}
		old, at := &was.Steps[i], slices.IndexFunc(r.own(), func(c metav1.Object) bool { return c.GetUID() == was.Steps[i].ChildUID })
		switch {
		case old.State == batchv1alpha1.StepPending || at < 0:
		case r.own()[at].GetDeletionTimestamp() != nil || view(r.own()[at]).Admission != r.admitted:
		default:
			r.Fail(ruleCause, "step %d begins again as attempt %d, and child %s is there", i, s.Attempts, old.ChildUID)
		}
	}
}

// noteUnknown notes that the sequence was written, if the controller that leads does not learn of it by an answer.
func (p *process) noteUnknown(known bool) {
	if !known || p.rivals || p.sender.Deposed {
		p.unknownAt = p.env.sequences.Versions.Last
	}
}

// unseenByLeader returns whether a decision was made before the caches showed a write of which the controller that leads does not know. No
// request fails for it, so that a child may be created, and the next pass stops it.
func (r *rules) unseenByLeader(o plan.Observed) bool {
	version, err := strconv.Atoi(o.SequentialJob.ResourceVersion)
	return err == nil && version < r.unknownAt
}

// unseen returns whether a child runs of which neither a status nor a cache of a controller that leads tells.
func (r *rules) unseen(child metav1.Object) bool {
	return r.unknown[child.GetUID()] || r.stripped[child.GetUID()] && !r.adopted[child.GetUID()]
}
