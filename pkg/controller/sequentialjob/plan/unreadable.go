// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// Unreadable is a JobSet that the server cannot read, and that the sequence controls or may control.
type Unreadable struct {
	Name string
	// UID is empty if it cannot be read, either.
	UID types.UID
	// Ended means that the JobSet had ended before.
	Ended bool
	// Cause is why it cannot be read.
	Cause string
}

// MayBeChild returns whether an object of which only the name is known may be a child of the sequence.
func MayBeChild(sj *batchv1alpha1.SequentialJob, name string) bool { return indexOf(sj, name) >= 0 }

// Unknown returns the children that cannot be read and that may run. While there are any, the sequence stays as it is: a
// step that may run must not run again, nor give its quota back, and the next one must not begin.
func Unknown(o Observed) (unknown []Unreadable) {
	for _, u := range o.Unreadable {
		if !u.Ended && !hasEnded(&o.SequentialJob.Status, u) {
			unknown = append(unknown, u)
		}
	}
	slices.SortFunc(unknown, func(a, b Unreadable) int { return cmp.Compare(a.Name, b.Name) })
	return unknown
}

// hasEnded returns whether the status says that a child has ended.
func hasEnded(status *batchv1alpha1.SequentialJobStatus, u Unreadable) bool {
	return u.UID != "" && slices.ContainsFunc(status.Steps, func(entry batchv1alpha1.SequentialJobStepStatus) bool {
		return entry.ChildUID == u.UID && (entry.State == batchv1alpha1.StepSucceeded || entry.State == batchv1alpha1.StepFailed)
	})
}

// readable returns the observation without the children that cannot be read: what the cache has of them says nothing.
func (o Observed) readable() Observed {
	o.Children = slices.DeleteFunc(slices.Clone(o.Children), func(c Child) bool {
		return c.Kind == batchv1alpha1.StepKindJobSet &&
			slices.ContainsFunc(o.Unreadable, func(u Unreadable) bool { return u.Name == c.Name })
	})
	return o
}

// without returns a plan for a sequence that is being deleted, without writes about children that cannot be read: the
// server refuses them. Such a child may run, so that the finalizer stays.
func (p Plan) without(unknown []Unreadable) Plan {
	p.RemoveFinalizer = p.RemoveFinalizer && len(unknown) == 0
	p.Delete = slices.DeleteFunc(p.Delete, func(d Deletion) bool {
		return slices.ContainsFunc(unknown, func(u Unreadable) bool { return u.Name == d.Name && d.Kind == batchv1alpha1.StepKindJobSet })
	})
	return p
}

// waitForUnreadable says what the sequence waits for.
func waitForUnreadable(q *sequence, unknown []Unreadable) Plan {
	if q.finished != nil {
		return Plan{}
	}
	s := newStatus(q)
	message := fmt.Sprintf("The server cannot read JobSet %s, so the sequence stays as it is until an administrator repairs or removes it: %s",
		unknown[0].Name, unknown[0].Cause)
	waits := progressing(batchv1alpha1.ReasonChildUnreadable, message)
	waits.event, waits.byReason = warning(batchv1alpha1.ReasonChildUnreadable, message), true
	s.fold(&wants{conditions: []condition{waits}})
	return s.result()
}
