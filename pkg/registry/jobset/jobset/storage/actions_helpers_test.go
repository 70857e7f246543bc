// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

var (
	begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now   = begin.Add(time.Hour + 123456789*time.Nanosecond)
	// stored is now as it is stored in attempts, second as in conditions.
	stored = ptr.To(metav1.NewMicroTime(begin.Add(time.Hour + 123456*time.Microsecond)))
	second = metav1.NewTime(begin.Add(time.Hour))
)

// micro is so many minutes after the beginning.
func micro(minutes int) *metav1.MicroTime {
	return ptr.To(metav1.NewMicroTime(begin.Add(time.Duration(minutes) * time.Minute)))
}

// train is a set of one launcher and two Jobs of workers. Its first attempt runs, and was ready after ten minutes.
func train(change ...func(*jobset.JobSet)) *jobset.JobSet {
	js := builders.Hub("train", builders.WithHubJobs("launcher", 1, 1), builders.WithHubJobs("workers", 2, 4))
	js.UID, js.Generation = "uid-1", 3
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 2}
	js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "workers", Ready: 2}, {Name: "launcher", Ready: 1}}
	js.Status.Attempts = []jobset.Attempt{{
		Number: 1, Trigger: jobset.TriggerStart, Scope: jobset.ScopeJobSet, RequestTime: micro(0), CreateTime: micro(1), ReadyTime: micro(10),
	}}
	for _, f := range change {
		f(js)
	}
	return js
}

// The states in which a set may be.
var states = map[string]func(*jobset.JobSet){
	"running":    func(*jobset.JobSet) {},
	"new":        unseen,
	"suspended":  suspended,
	"completed":  func(js *jobset.JobSet) { finish(js, jobset.ConditionCompleted, jobset.OutcomeCompleted) },
	"failed":     failed,
	"deleting":   func(js *jobset.JobSet) { js.DeletionTimestamp = ptr.To(metav1.NewTime(begin)) },
	"foreign":    func(js *jobset.JobSet) { js.Spec.ManagedBy = ptr.To("example.com/other") },
	"multikueue": multikueue,
	"multikueue waits": func(js *jobset.JobSet) {
		multikueue(js)
		js.Spec.Suspend, js.Status = ptr.To(true), jobset.JobSetStatus{}
	},
	"queued":           queued,
	"owned":            owned,
	"owned failed":     func(js *jobset.JobSet) { owned(js); failed(js) },
	"queued failed":    func(js *jobset.JobSet) { queued(js); failed(js) },
	"queued suspended": func(js *jobset.JobSet) { queued(js); suspended(js) },
	"suspended failed": func(js *jobset.JobSet) { failed(js); js.Spec.Suspend = ptr.To(true) },
	"cancelled":        cancelled,
	"queued cancelled": func(js *jobset.JobSet) { unseen(js); queued(js); js.Spec.Suspend = ptr.To(true); cancelled(js) }, // while it waited
}

func cancelled(js *jobset.JobSet) {
	if _, err := actions.Cancel(js, &batch.JobSetActionSpec{Reason: "wrong data"}, actions.Call{User: "bob", Now: begin.Add(20 * time.Minute)}); err != nil {
		panic(err)
	}
}

// multikueue makes Kueue run the set in another cluster. It copies the status from there without attempts.
func multikueue(js *jobset.JobSet) {
	queued(js)
	js.Spec.ManagedBy, js.Status.Attempts = ptr.To("kueue.x-k8s.io/multikueue"), nil
}

func unseen(js *jobset.JobSet) { js.Status = jobset.JobSetStatus{} }

func queued(js *jobset.JobSet) {
	js.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
}

func owned(js *jobset.JobSet) {
	js.OwnerReferences = []metav1.OwnerReference{{Kind: "TrainJob", Name: "big", Controller: ptr.To(true)}}
}

func failed(js *jobset.JobSet) { finish(js, jobset.ConditionFailed, jobset.OutcomeFailed) }

// suspended is what the controller makes of a set that was suspended by an edit after twenty minutes.
func suspended(js *jobset.JobSet) {
	js.Spec.Suspend = ptr.To(true)
	js.Status.Attempts[0].EndTime, js.Status.Attempts[0].Outcome = micro(20), jobset.OutcomeSuspended
	js.Status.ReadyMilliseconds = 600_000
	js.Status.Conditions = []metav1.Condition{{
		Type: jobset.ConditionSuspended, Status: metav1.ConditionTrue, Reason: "SuspendedJobs", LastTransitionTime: metav1.NewTime(begin),
	}}
}

func finish(js *jobset.JobSet, condition string, outcome jobset.AttemptOutcome) {
	js.Status.TerminalState = condition
	js.Status.Conditions = []metav1.Condition{{
		Type: condition, Status: metav1.ConditionTrue, Reason: "SomeReason", LastTransitionTime: metav1.NewTime(begin),
	}}
	js.Status.Attempts[0].EndTime, js.Status.Attempts[0].Outcome = micro(30), outcome
}

func call(change ...func(*actions.Call)) actions.Call {
	c := actions.Call{User: "alice", Now: now}
	for _, f := range change {
		f(&c)
	}
	return c
}

func at(attempt int32) *batch.ActionPreconditions {
	return &batch.ActionPreconditions{Attempt: &attempt}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
