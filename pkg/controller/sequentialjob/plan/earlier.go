// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// No pods of two steps, or of two attempts of one, run at the same time: they may write one volume. That a child has
// ended, or is gone, does not mean that its pods have ended. A JobSet completes while some of its Jobs run, if its
// success policy says so; a Job that a user deletes is gone before its pods. So before a child is created, the API is
// asked for pods of the sequence that are not of this attempt, and for Jobs of its JobSets that may create more. The
// end of a step is stored before that, since a child that has ended and is deleted meanwhile must not run again.

const (
	// earlierSoonest and earlierLatest are after which time it is looked again whether earlier pods have ended. No watch shows it.
	earlierSoonest = 5 * time.Second
	earlierLatest  = 30 * time.Second
)

// waitForEarlier returns whether the current step waits until the pods of earlier children have ended, and adds what it wants meanwhile.
func waitForEarlier(q *sequence, w *wants) bool {
	index, entry := q.index, q.entry
	if index == 0 && entry.Attempts <= 1 || q.Earlier.IsNone() {
		return false
	}
	waited := earlierLatest
	if entry.StartTime != nil {
		waited = q.Now.Sub(entry.StartTime.Time)
	}
	switch running, runs := q.Earlier.Get(); {
	case runs:
		w.conditions = append(w.conditions, progressing(batchv1alpha1.ReasonWaitingForPods,
			fmt.Sprintf("Job %d starts once the pods of earlier jobs have ended: %s still runs", index, running)))
	case q.Earlier.Open():
		w.asks.Earlier = &EarlierQuery{Index: index, Attempt: entry.Attempts, JobSets: jobSetsBefore(q)}
	case waited >= hostplan.PassesAfter:
		w.conditions = append(w.conditions, progressing(batchv1alpha1.ReasonWaitingForPods,
			fmt.Sprintf("Job %d starts once it is known whether pods of earlier jobs run: %s", index, truncated(q.EarlierUnreadable))))
	}
	w.requeueAfter = min(max(waited, earlierSoonest), earlierLatest)
	return true
}

// jobSetsBefore returns the names of earlier JobSets whose Jobs may not have ended. One that is gone may have left some.
func jobSetsBefore(q *sequence) (names []string) {
	status := &q.SequentialJob.Status
	for i := range status.Steps {
		s, current := &status.Steps[i], i == q.index
		ended := slices.ContainsFunc(q.ended, func(m member) bool { return m.Name == s.ChildName && m.Kind == s.Kind && m.JobsEnded })
		// An earlier attempt of the current step may have been of another kind.
		if (s.Kind == batchv1alpha1.StepKindJobSet || current) && !ended && (!current || s.Attempts > 1) {
			names = append(names, s.ChildName)
		}
	}
	return names
}
