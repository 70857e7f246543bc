// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// members are the Jobs of the examples with a leader and two workers.
func members(set string) []string {
	return []string{set + "-leader-0", set + "-workers-0", set + "-workers-1"}
}

func TestRow7_1_12_FailJobSet(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("failure-policy-failjobset")
	js := e.awaitFailed("final", "FailJobSetFailurePolicyAction")
	if diff := cmp.Diff(restarts{}, restartsOf(js)); diff != "" {
		t.Errorf("restarts (-want +got):\n%s", diff)
	}
	if got := js.Spec.FailurePolicy.Rules[0].Name; got != "failurePolicyRule0" {
		t.Errorf("name of the unnamed rule: got %q, want failurePolicyRule0", got)
	}
}

func TestRow7_1_13_RestartJobSet(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("failure-policy-restartjobset")
	js := e.awaitFailed("again", "ReachedMaxRestarts")
	if diff := cmp.Diff(restarts{All: 3, Counted: 3}, restartsOf(js)); diff != "" {
		t.Errorf("restarts (-want +got):\n%s", diff)
	}
}

func TestRow7_1_14_RestartJobSetAndIgnoreMaxRestarts(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("failure-policy-restartjobset-ignore")
	for attempt := 1; attempt <= 3; attempt++ {
		e.failJob("for-ever-leader-0", 1)
		e.awaitAttempt(attempt, members("for-ever")...)
	}
	e.awaitRestarts("for-ever", restarts{All: 3})
	e.end("succeeded", e.awaitRunning("", 3))
	e.awaitCompleted("for-ever")
}

// oneWorker fails one worker of the example, which is restarted alone, and then the leader, which restarts all.
func oneWorker(t *testing.T, example, set string) *env {
	t.Helper()
	e := newEnv(t)
	e.example(example)
	e.awaitRunning("", 3)
	before := e.jobs()
	e.failJob(set+"-workers-1", 1)
	e.eventually(func() string {
		if job := e.jobs()[set+"-workers-1"]; job == nil || job.UID == before[job.Name].UID {
			return "the failed Job was not recreated"
		}
		return ""
	})
	e.awaitRunning("", 3)
	for _, name := range members(set)[:2] {
		if e.jobs()[name].UID != before[name].UID {
			t.Errorf("Job %s did not fail, but was recreated", name)
		}
	}
	return e
}

func TestRow7_1_15_RestartJob(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := oneWorker(t, "failure-policy-restartjob", "one-by-one")
	want := restarts{Jobs: map[string][]int32{"workers": {0, 1}}, JobsCounted: map[string][]int32{"workers": {0, 1}}}
	e.awaitRestarts("one-by-one", want)
	e.failJob("one-by-one-leader-0", 1)
	e.awaitAttempt(1, members("one-by-one")...)
	want.All, want.Counted = 1, 1
	e.awaitRestarts("one-by-one", want)
	e.end("succeeded", e.awaitRunning("", 3))
	e.awaitCompleted("one-by-one")
}

func TestRow7_1_16_RestartJobAndIgnoreMaxRestarts(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := oneWorker(t, "failure-policy-restartjob-ignore", "one-for-free")
	e.awaitRestarts("one-for-free", restarts{Jobs: map[string][]int32{"workers": {0, 1}}})
	e.end("succeeded", e.awaitRunning("", 3))
	e.awaitCompleted("one-for-free")
}

func TestRow7_1_17_OnJobFailureReasons(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("failure-policy-reasons")
	js := e.awaitFailed("reasons", "FailJobSetFailurePolicyAction")
	if diff := cmp.Diff(restarts{}, restartsOf(js)); diff != "" {
		t.Errorf("restarts (-want +got):\n%s", diff)
	}
}

func TestRow7_1_18_OnJobFailureReasonsWithAPodFailurePolicy(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("failure-policy-pod-failure-policy")
	js := e.awaitFailed("exit-code", "FailJobSetFailurePolicyAction")
	if diff := cmp.Diff(restarts{}, restartsOf(js)); diff != "" {
		t.Errorf("restarts (-want +got):\n%s", diff)
	}
	// The Job would have retried: its policy ended it, not its backoffLimit.
	if got := e.jobs()["exit-code-leader-0"].Status.Failed; got != 1 {
		t.Errorf("the leader failed %d times, want once", got)
	}
}

func TestRow7_1_19_HostMaintenance(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("failure-policy-host-maintenance")
	pod := e.awaitRunning("maintenance-leader-0", 1)[0]
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet", LastTransitionTime: metav1.Now(),
	})
	if _, err := shared.Kube.CoreV1().Pods(e.namespace).UpdateStatus(t.Context(), &pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.end("failed", []corev1.Pod{pod})
	e.awaitAttempt(1, members("maintenance")...)
	e.awaitRestarts("maintenance", restarts{All: 1})
	e.failJob("maintenance-leader-0", 1)
	e.awaitFailed("maintenance", "FailJobSetFailurePolicyAction")
}
