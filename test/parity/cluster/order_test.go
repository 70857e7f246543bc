// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// firstReady is when the first pod of a Job became ready. Its time has whole seconds.
func (w *world) firstReady(job string) metav1.Time {
	w.Helper()
	var first metav1.Time
	for _, pod := range w.pods(job) {
		if pod.Status.StartTime != nil && (first.IsZero() || pod.Status.StartTime.Before(&first)) {
			first = *pod.Status.StartTime
		}
	}
	if first.IsZero() {
		w.Fatalf("no pod of %s has ever started", job)
	}
	return first
}

// after checks that a Job was not made before a time.
func (w *world) after(job string, other metav1.Time, what string) {
	w.Helper()
	if made := w.created(job); made.Before(&other) {
		w.Errorf("%s was created at %s, before %s at %s", job, made, what, other)
	}
}

func (w *world) completed(job string) metav1.Time {
	w.Helper()
	at := w.jobs()[job].Status.CompletionTime
	if at == nil {
		w.Fatalf("Job %s is not complete", job)
	}
	return *at
}

func TestRow7_1_09_StartupPolicy(t *testing.T) {
	w := newWorld(t)
	w.example("startup-driver-ready")
	w.awaitCompleted("in-order")
	w.after("in-order-workers-0", w.firstReady("in-order-driver-0"), "the driver was ready")
	w.after("in-order-workers-1", w.firstReady("in-order-driver-0"), "the driver was ready")
	w.awaitCondition("in-order", jobsetv1alpha2.JobSetStartupPolicyCompleted, "True InOrderStartupPolicyCompleted")
	if probe := w.pods("in-order-driver-0")[0].Spec.Containers[0].ReadinessProbe; probe == nil {
		t.Error("the driver has lost its readiness probe")
	}
}

func TestRow7_1_10_DependsOn(t *testing.T) {
	w := newWorld(t)
	w.example("depends-on")
	w.awaitJobs("steps-initializer-0", "steps-launcher-0", "steps-workers-0", "steps-workers-1")
	w.after("steps-launcher-0", w.completed("steps-initializer-0"), "the initializer was complete")
	w.after("steps-workers-0", w.firstReady("steps-launcher-0"), "the launcher was ready")
	if probe := w.pods("steps-launcher-0")[0].Spec.Containers[0].StartupProbe; probe == nil {
		t.Error("the launcher has lost its startup probe")
	}
	w.succeed("steps-launcher-0", 1)
	w.awaitCompleted("steps")
}

func TestRow7_1_11_SeveralDependencies(t *testing.T) {
	w := newWorld(t)
	w.example("depends-on-multiple")
	w.eventually(func() string {
		if !jobHas(w.jobs()["both-dataset-0"], batchv1.JobComplete) {
			return "the first initializer is not complete"
		}
		return ""
	})
	w.awaitRunning("both-model-0", 1)
	w.awaitJobs("both-dataset-0", "both-model-0")
	w.succeed("both-model-0", 1)
	w.awaitCompleted("both")
	w.after("both-worker-0", w.completed("both-model-0"), "the second initializer was complete")
}

func jobHas(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	if job == nil {
		return false
	}
	for _, c := range job.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
