// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
)

var (
	begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now   = begin.Add(time.Hour + 123456789*time.Nanosecond)
	// stored is now as it is stored in the last action, second as everywhere else.
	stored = ptr.To(metav1.NewMicroTime(begin.Add(time.Hour + 123456*time.Microsecond)))
	second = ptr.To(metav1.NewTime(begin.Add(time.Hour)))
)

// at is so many minutes after the beginning.
func at(minutes int) *metav1.Time {
	return ptr.To(metav1.NewTime(begin.Add(time.Duration(minutes) * time.Minute)))
}

// nightly is a sequence of three steps, of which the first has completed and the second runs in its second attempt.
func nightly(change ...func(*batch.SequentialJob)) *batch.SequentialJob {
	sj := &batch.SequentialJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "ml", UID: "uid-1", Generation: 3}}
	sj.Spec.Steps = []batch.SequentialJobStep{
		{Name: "prepare", Container: &corev1.Container{Image: "a"}},
		{Name: "train", JobSet: &batch.JobSetTemplateSpec{}},
		{Name: "evaluate", Job: &batchv1.JobTemplateSpec{}},
	}
	sj.Status = batch.SequentialJobStatus{
		StartTime: at(0), ActiveSeconds: 60, ActiveSince: at(30),
		State:    batch.SequentialJobState{Active: 1, Succeeded: 1},
		Progress: batch.SequentialJobProgress{CurrentIndex: ptr.To[int32](1), CompletedIndices: []int32{0}},
		Steps: []batch.SequentialJobStepStatus{
			{Name: "prepare", Kind: batch.StepKindJob, ChildName: "nightly-0", ChildUID: "c0", State: batch.StepSucceeded, StartTime: at(0), CompletionTime: at(10), Attempts: 1, ExitCode: ptr.To[int32](0)},
			{Name: "train", Kind: batch.StepKindJobSet, ChildName: "nightly-1", ChildUID: "c1", State: batch.StepRunning, StartTime: at(11), Attempts: 2},
		},
	}
	for _, f := range change {
		f(sj)
	}
	return sj
}

func step(sj *batch.SequentialJob) *batch.SequentialJobStepStatus {
	return &sj.Status.Steps[*sj.Status.Progress.CurrentIndex]
}

// The states in which a sequence may be.
var states = map[string]func(*batch.SequentialJob){
	"pending":   func(sj *batch.SequentialJob) { sj.Status = batch.SequentialJobStatus{} },
	"starting":  func(sj *batch.SequentialJob) { step(sj).State, step(sj).ChildUID = batch.StepStarting, "" },
	"running":   func(*batch.SequentialJob) {},
	"between":   between,
	"suspended": suspended,
	"suspended before the start": func(sj *batch.SequentialJob) {
		sj.Status, sj.Spec.Suspend = batch.SequentialJobStatus{}, ptr.To(true)
	},
	"waiting": func(sj *batch.SequentialJob) {
		step(sj).State, sj.Status.ActiveSince = batch.StepWaiting, nil
	},
	"erring": func(sj *batch.SequentialJob) {
		condition(sj, "Failed", "ReconciliationError", "Failed to reconcile: no")
	},
	"completed": func(sj *batch.SequentialJob) {
		between(sj)
		sj.Spec.Steps, sj.Status.CompletionTime = sj.Spec.Steps[:2], at(40)
		condition(sj, "Complete", "AllJobsCompleted", "")
	},
	"failed": failed,
	"late": func(sj *batch.SequentialJob) {
		condition(sj, "Failed", "DeadlineExceeded", "")
		sj.Status.CompletionTime, sj.Status.ActiveSince = at(40), nil
	},
	"cancelled": cancelled,
	"cancelled before the start": func(sj *batch.SequentialJob) {
		sj.Status = batch.SequentialJobStatus{}
		cancelled(sj)
	},
	"failed and suspended": func(sj *batch.SequentialJob) { failed(sj); sj.Spec.Suspend = ptr.To(true) },
	"deleting":             func(sj *batch.SequentialJob) { sj.DeletionTimestamp = at(40) },
	"foreign":              func(sj *batch.SequentialJob) { sj.Spec.ManagedBy = ptr.To("example.com/other") },
}

// between is a sequence of which two steps have completed, and the third has not started.
func between(sj *batch.SequentialJob) {
	step(sj).State, step(sj).CompletionTime = batch.StepSucceeded, at(40)
	sj.Status.Progress = batch.SequentialJobProgress{CurrentIndex: ptr.To[int32](2), CompletedIndices: []int32{0, 1}}
	sj.Status.State = batch.SequentialJobState{Succeeded: 2}
}

func suspended(sj *batch.SequentialJob) {
	sj.Spec.Suspend = ptr.To(true)
	step(sj).State, sj.Status.ActiveSince = batch.StepSuspended, nil
	condition(sj, "Suspended", "Suspended", "")
}

func cancelled(sj *batch.SequentialJob) {
	if _, err := actions.Cancel(sj, &batch.SequentialJobActionSpec{Reason: "wrong data"}, actions.Call{User: "bob", Now: begin.Add(45 * time.Minute)}); err != nil {
		panic(err)
	}
}

// failed is what the controller makes of a sequence whose current step fails.
func failed(sj *batch.SequentialJob) {
	condition(sj, "Failed", "JobFailed", "Job 1 failed: BackoffLimitExceeded")
	sj.Status.Conditions = append(sj.Status.Conditions, metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: "Failed"})
	s := step(sj)
	s.State, s.CompletionTime, s.ExitCode, s.Reason, s.Message = batch.StepFailed, at(40), ptr.To[int32](3), "BackoffLimitExceeded", "it has failed"
	p := &sj.Status.Progress
	p.FailedIndex, p.FailureReason = ptr.To(*p.CurrentIndex), "BackoffLimitExceeded"
	sj.Status.State = batch.SequentialJobState{Succeeded: int32(len(p.CompletedIndices)), Failed: 1}
	sj.Status.CompletionTime, sj.Status.ActiveSince = at(40), nil
}

func condition(sj *batch.SequentialJob, conditionType, reason, message string) {
	sj.Status.Conditions = append([]metav1.Condition(nil), metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: *at(40),
	})
}

func call() actions.Call { return actions.Call{User: "alice", Now: now} }

func later(user string, minutes int) actions.Call {
	return actions.Call{User: user, Now: now.Add(time.Duration(minutes) * time.Minute)}
}

func attempt(n int32) *batch.SequentialJobPreconditions {
	return &batch.SequentialJobPreconditions{Attempt: &n}
}

const prefix = `Operation cannot be fulfilled on sequentialjobs.batch.jobset-apiserver.io "nightly": `

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
