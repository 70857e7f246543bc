// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// noon is when the sets of the tests are created.
var noon = time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)

// at is noon and so many seconds.
func at(seconds float64) *metav1.MicroTime {
	return ptr.To(metav1.NewMicroTime(noon.Add(time.Duration(seconds * float64(time.Second)))))
}

func after(seconds float64) time.Time { return at(seconds).Time }

func newSet(change ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	js := builders.JobSet("train", builders.WithJobs("workers", 1, 1))
	js.Namespace, js.CreationTimestamp = "team-a", metav1.NewTime(noon)
	for _, c := range change {
		c(js)
	}
	return js
}

func withAttempts(attempts ...jobsetv1alpha2.Attempt) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Status.Attempts = attempts
		for i := range attempts {
			if a := &attempts[i]; a.ReadyTime != nil && a.EndTime != nil {
				js.Status.ReadyMilliseconds += a.EndTime.Sub(a.ReadyTime.Time).Milliseconds()
			}
		}
		counts := jobsetv1alpha2.ReplicatedJobStatus{Name: "workers"}
		if last := attempts[len(attempts)-1]; last.EndTime == nil && last.ReadyTime != nil {
			counts.Active, counts.Ready = 1, 1
		} else if last.EndTime == nil && last.CreateTime != nil {
			counts.Active = 1
		}
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{counts}
	}
}

func withCondition(kind, reason string, status metav1.ConditionStatus, seconds float64) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Status.Conditions = append(js.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(after(seconds))})
		if status == metav1.ConditionTrue && (kind == jobsetv1alpha2.JobSetFailed || kind == jobsetv1alpha2.JobSetCompleted) {
			js.Status.TerminalState = kind
		}
	}
}

// eventful is a set that had most of what can happen: a queue, a failure, a restart by hand, a suspension.
func eventful() *jobsetv1alpha2.JobSet {
	return newSet(
		func(js *jobsetv1alpha2.JobSet) { js.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "gpu"} },
		withAttempts(
			jobsetv1alpha2.Attempt{
				Number: 1, Trigger: jobsetv1alpha2.TriggerStart, Scope: jobsetv1alpha2.ScopeJobSet,
				RequestTime: at(900), CreateTime: at(930), ReadyTime: at(1080), EndTime: at(4500), Outcome: jobsetv1alpha2.OutcomeRestarted,
				EndReason: "restarting jobset",
				FirstCause: &jobsetv1alpha2.FailureCause{
					Job: "train-workers-3", Pod: "train-workers-3-1-x7k2p", Node: "node-017", Container: "main", ExitCode: ptr.To[int32](137),
					Signal: ptr.To[int32](9), Reason: "OOMKilled", Message: "CUDA error <device-side>\nassert & more",
				},
			},
			jobsetv1alpha2.Attempt{
				Number: 2, Trigger: jobsetv1alpha2.TriggerFailurePolicy, Rule: "hosts", Scope: jobsetv1alpha2.ScopeJobSet, Reason: "jobset restarted after Job train-workers-3 failed",
				RequestTime: at(4500), CreateTime: at(4560), ReadyTime: at(4800), EndTime: at(6600), Outcome: jobsetv1alpha2.OutcomeSuspended,
				EndUser: "alice", EndReason: "maintenance of rack 4",
			},
			jobsetv1alpha2.Attempt{
				Number: 3, Trigger: jobsetv1alpha2.TriggerResume, User: "alice", Scope: jobsetv1alpha2.ScopeJobSet, Reason: "rack is back",
				RequestTime: at(8400), CreateTime: at(8410), ReadyTime: at(8520), EndTime: at(9000), Outcome: jobsetv1alpha2.OutcomeRestarted,
				EndUser: "bob", EndReason: "stuck in a collective",
			},
			jobsetv1alpha2.Attempt{
				Number: 4, Trigger: jobsetv1alpha2.TriggerRequested, User: "bob", Scope: jobsetv1alpha2.ScopeJob, ReplicatedJob: "workers", JobIndex: ptr.To[int32](3),
				Reason: "stuck in a collective", RequestTime: at(9000), CreateTime: at(9030), ReadyTime: at(9120),
			},
		))
}
