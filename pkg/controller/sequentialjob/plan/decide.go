// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// Decide returns what to do about a sequence.
func Decide(o Observed) Plan {
	sj := o.SequentialJob
	switch {
	case helper.ManagedElsewhere(sj):
		return Plan{}
	case sj.DeletionTimestamp != nil:
		return stopForDeletion(o)
	}
	owned := familyOf(o)
	st := newStatus(o)
	var p Plan
	switch {
	case st.afterRestore(owned):
	case helper.Finished(sj) != nil:
		p = afterFinish(o, owned, st)
	default:
		p = follow(o, owned, st)
	}
	st.countChildren(owned)
	// A request that came late may have created a child whose finalizer is gone, and users can remove it.
	p.AddFinalizer = (p.creates() || owned.active > 0) && !hasFinalizer(sj)
	p.RemoveFinalizer = hasFinalizer(sj) && owned.active == 0 && !st.aboutToRun()
	if p.RemoveFinalizer && !o.Gone {
		p.Unseen = unseenAtEnd(o)
		p.RemoveFinalizer = p.Unseen == nil
	}
	p.Status, p.Events = st.result()
	p.FailedJob = st.failedJob
	return p
}

// follow brings an unfinished sequence on. A step that ends, and one that begins, is a status write and nothing else.
func follow(o Observed, owned family, st *statusBuilder) Plan {
	st.takeUp(owned)
	entry := begunStep(o.SequentialJob)
	switch {
	case entry == nil:
		return beginNext(o, owned, st)
	case owned.current != nil && owned.current.End != "":
		st.endStep(*owned.current)
		return Plan{}
	case owned.current == nil && entry.ChildUID != "":
		st.beginAgain()
		return Plan{}
	}
	if st.pastDeadline() {
		st.failDeadline()
		return Plan{}
	}
	p := Plan{Delete: deletions(owned.inTheWay, noteOldAttempt)}
	if owned.current == nil {
		st.createCurrent(owned, &p)
	} else {
		st.followChild(*owned.current, &p)
	}
	p.RequeueAfter = sooner(p.RequeueAfter, st.timeToDeadline())
	p.applyTTL(o, owned)
	return p
}

// beginNext begins the step that is next, unless the sequence is suspended or has no other step.
func beginNext(o Observed, owned family, st *statusBuilder) Plan {
	switch index := st.index(); {
	case index >= helper.StepCount(&o.SequentialJob.Spec):
		st.complete()
	case helper.Suspended(o.SequentialJob):
		st.setSuspended(true, "")
		return Plan{Delete: deletions(owned.inTheWay, noteOldAttempt)}
	default:
		st.begin(index)
	}
	return Plan{}
}

// deletions returns those of children that are not being deleted yet.
func deletions(members []member, note func(member) string) (out []Deletion) {
	for _, m := range members {
		if !m.Deleting {
			out = append(out, Deletion{ChildRef: m.ChildRef, Index: m.index, Note: note(m)})
		}
	}
	return out
}

// sooner returns the shorter one of two times; 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func hasFinalizer(sj *batchv1alpha1.SequentialJob) bool {
	return slices.Contains(sj.Finalizers, batchv1alpha1.SequentialJobFinalizer)
}
