// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// copied returns a copy of a snapshot, to be compared after the decision.
func copied(o plan.Observed) *plan.Observed {
	o.SequentialJob = o.SequentialJob.DeepCopy()
	o.Children = append([]plan.Child(nil), o.Children...)
	return &o
}

// describe returns a snapshot in one line.
func describe(o plan.Observed) string {
	words := []string{fmt.Sprintf("%s@%s, generation %d, suspend %t, finalizers %d, deleting %t,", o.SequentialJob.UID, o.SequentialJob.ResourceVersion,
		o.SequentialJob.Generation, helper.Suspended(o.SequentialJob), len(o.SequentialJob.Finalizers), o.SequentialJob.DeletionTimestamp != nil), describeStatus(&o.SequentialJob.Status)}
	for _, c := range o.Children {
		words = append(words, fmt.Sprintf("%s(%s %d suspended %t busy %t deleting %t %s)", c.Name, c.UID, c.Attempt, c.Suspended, c.Busy, c.Deleting, c.End))
	}
	return strings.Join(words, " ")
}

func describeStatus(s *batchv1alpha1.SequentialJobStatus) string {
	words := []string{fmt.Sprintf("[current %d, completed %v, active %d", ptr.Deref(s.Progress.CurrentIndex, -1), s.Progress.CompletedIndices, s.State.Active)}
	for i := range s.Steps {
		words = append(words, fmt.Sprintf("%s:%s/%d/%s", s.Steps[i].Name, s.Steps[i].State, s.Steps[i].Attempts, s.Steps[i].ChildUID))
	}
	for _, c := range s.Conditions {
		words = append(words, fmt.Sprintf("%s=%s:%s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(words, " ") + "]"
}

// describePlan returns a plan in one line.
func describePlan(p plan.Plan) string {
	var words []string
	for _, d := range p.Delete {
		words = append(words, fmt.Sprintf("delete %s (%s)", d.Name, d.UID))
	}
	for _, patch := range p.Suspend {
		words = append(words, fmt.Sprintf("suspend %s: %t", patch.Name, patch.Suspend))
	}
	if p.SetWorkloadActive != nil {
		words = append(words, fmt.Sprintf("workload active: %t", p.SetWorkloadActive.Active))
	}
	if p.CreateJob != nil {
		words = append(words, "create job "+p.CreateJob.Name)
	}
	if p.CreateJobSet != nil {
		words = append(words, "create jobset "+p.CreateJobSet.Name)
	}
	if p.Status != nil {
		words = append(words, "status "+describeStatus(p.Status))
	}
	words = append(words, fmt.Sprintf("finalizer +%t -%t, delete %t, again after %s", p.AddFinalizer, p.RemoveFinalizer, p.DeleteSequentialJob, p.RequeueAfter))
	return strings.Join(words, ", ")
}

// describeSpec returns what matters of a sequence in one line.
func describeSpec(sj *batchv1alpha1.SequentialJob) string {
	var words []string
	for _, step := range helper.Steps(&sj.Spec) {
		words = append(words, fmt.Sprintf("%s:%s", step.Name, step.Kind()))
	}
	return fmt.Sprintf("%s, %s, suspend %t, deadline %d, ttl %d, queue %q, managedBy %q", strings.Join(words, " "), sj.Spec.UpdateStrategy.Type, helper.Suspended(sj),
		ptr.Deref(sj.Spec.ActiveDeadlineSeconds, -1), ptr.Deref(sj.Spec.TTLSecondsAfterFinished, -1), sj.Labels[helper.QueueKey], ptr.Deref(sj.Spec.ManagedBy, ""))
}
