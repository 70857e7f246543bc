// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestPodsMeetByName has 20 pods on two nodes look each other up by the names that the set gives them, and speak to
// each other. Then their logs are read.
func TestPodsMeetByName(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const jobs, pods = 4, 5
	args := []string{"meet"}
	for job := range jobs {
		for pod := range pods {
			args = append(args, fmt.Sprintf("meet-w-%d-%d.meet", job, pod))
		}
	}
	e.create(set("meet", jobs, pods, args...))
	e.ended("meet", jobsetv1alpha2.JobSetCompleted)

	list, err := core.CoreV1().Pods(e.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: jobsetv1alpha2.JobSetNameKey + "=meet"})
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]int{}
	for _, pod := range list.Items {
		nodes[pod.Spec.NodeName]++
	}
	if len(list.Items) != jobs*pods || len(nodes) != 2 {
		t.Errorf("pods per node: %v, want %d on two nodes", nodes, jobs*pods)
	}
	logs := e.plugin("logs", "meet", "--tail=-1")
	for job := range jobs {
		for pod := range pods {
			prefix := fmt.Sprintf("[w-%d-%d] ", job, pod)
			for _, want := range []string{prefix + "heard ", prefix + "spoke to "} {
				if got := strings.Count(logs, want); got != jobs*pods {
					t.Errorf("%d lines begin with %q, want %d", got, want, jobs*pods)
				}
			}
		}
	}
}

// firstCause returns that of the last attempt of a set, which must have one.
func (e *env) firstCause(js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.FailureCause {
	e.Helper()
	if n := len(js.Status.Attempts); n == 0 || js.Status.Attempts[n-1].FirstCause == nil {
		e.Fatalf("no first cause in %+v", js.Status.Attempts)
	}
	return js.Status.Attempts[len(js.Status.Attempts)-1].FirstCause
}

func TestExitCodeEndsTheSet(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	js := set("codes", 2, 1, "exit", "42")
	js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 5, Rules: []jobsetv1alpha2.FailurePolicyRule{{
		Name: "fatal", Action: jobsetv1alpha2.FailJobSet, OnJobFailureReasons: []string{batchv1.JobReasonPodFailurePolicy},
	}}}
	js.Spec.ReplicatedJobs[0].Template.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:      batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}},
	}}}
	e.create(js)
	js = e.ended("codes", jobsetv1alpha2.JobSetFailed)
	cause := e.firstCause(js)
	if js.Status.Restarts != 0 || cause.ExitCode == nil || *cause.ExitCode != 42 || cause.Container != "main" {
		t.Errorf("%d restarts, first cause %+v", js.Status.Restarts, cause)
	}
	if out := e.plugin("why", "codes"); !strings.Contains(out, "exit code 42") {
		t.Errorf("why does not name the exit code:\n%s", out)
	}
}

func TestMemoryRunsOut(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	js := set("memory", 1, 1, "fill")
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	e.create(js)
	js = e.ended("memory", jobsetv1alpha2.JobSetFailed)
	if cause := e.firstCause(js); cause.Reason != "OOMKilled" || cause.ExitCode == nil || *cause.ExitCode != 137 {
		t.Errorf("first cause is %+v", cause)
	}
}
