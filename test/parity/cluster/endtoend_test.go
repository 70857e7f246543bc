// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// steer sets what the simulated nodes do with pods: "running", until the test ends them, or a number of seconds to run.
func steer(how string) func(*replicatedJob) {
	return func(rj *replicatedJob) {
		key := "jobset-apiserver.io/kwok-run-seconds"
		if how == "running" {
			key = "jobset-apiserver.io/kwok-outcome"
		}
		rj.Template.Spec.BackoffLimit = ptr.To[int32](0)
		rj.Template.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		rj.Template.Spec.Template.Annotations = map[string]string{key: how}
	}
}

// jobSetOf returns a set with the name "set".
func jobSetOf(change ...func(*jobSet)) *jobSet {
	js := builders.JobSet("set", change...)
	js.Namespace = ""
	return js
}

func (e *env) create(js *jobSet) *jobSet {
	e.Helper()
	created, err := e.sets.Create(e.Context(), js, metav1.CreateOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return created
}

// update changes the set in one write.
func (e *env) update(change func(*jobSet)) {
	e.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		js, err := e.sets.Get(e.Context(), "set", metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(js)
		_, err = e.sets.Update(e.Context(), js, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		e.Fatal(err)
	}
}

func TestRow7_4_01_PodsHaveHostnames(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	for name, subdomain := range map[string]string{"default subdomain": "set", "custom subdomain": "custom"} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.create(jobSetOf(builders.WithJobs("rjob", 4, 1, steer("1")), func(js *jobSet) {
				if subdomain != js.Name {
					js.Spec.Network = &jobsetv1alpha2.Network{Subdomain: subdomain}
				}
			}))
			e.awaitCompleted("set")
			e.resolvable("set", subdomain, 4)
		})
	}
}

func TestRow7_4_02_TimeToLiveWithAFinalizerOfTheUser(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	const finalizer = "example.com/hold"
	e := newEnv(t)
	e.create(jobSetOf(builders.WithJobs("rjob", 2, 1, steer("1")), func(js *jobSet) {
		js.Finalizers, js.Spec.TTLSecondsAfterFinished = []string{finalizer}, ptr.To[int32](5)
	}))
	done := e.awaitCompleted("set")
	e.eventually(func() string {
		js := e.get("set")
		if js.DeletionTimestamp == nil {
			return "the set is not being deleted"
		}
		for _, c := range done.Status.Conditions {
			if age := js.DeletionTimestamp.Sub(c.LastTransitionTime.Time).Seconds(); c.Type == jobsetv1alpha2.JobSetCompleted && age < 5 {
				t.Errorf("the set was deleted %.0f seconds after its end, want 5", age)
			}
		}
		return ""
	})
	e.update(func(js *jobSet) {
		js.Finalizers = slices.DeleteFunc(js.Finalizers, func(f string) bool { return f == finalizer })
	})
	e.awaitGone("set")
}

func TestRow7_4_03_DeletionInTheForeground(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.create(jobSetOf(builders.WithJobs("rjob", 3, 1, steer("running"))))
	e.awaitRunning("", 3)
	foreground := metav1.DeletePropagationForeground
	if err := e.sets.Delete(t.Context(), "set", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	e.eventually(func() string {
		// The Jobs are read after the set, so what is seen of them is not older than its end.
		_, err := e.sets.Get(t.Context(), "set", metav1.GetOptions{})
		jobs := e.jobs()
		if !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the set is there still (%v)", err)
		}
		if len(jobs) != 0 {
			t.Errorf("Jobs outlive their set: %v", sortedKeys(jobs))
		}
		return ""
	})
}

// awaitActive waits until so many Jobs of the set are active.
func (e *env) awaitActive(want int32) {
	e.Helper()
	e.eventually(func() string {
		var got int32
		for _, s := range e.get("set").Status.ReplicatedJobsStatus {
			got += s.Active
		}
		if got != want {
			return fmt.Sprintf("active Jobs: got %d, want %d", got, want)
		}
		return ""
	})
}

func TestRow7_4_04_QueueingCycle(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.create(jobSetOf(builders.WithJobs("first", 1, 1, steer("2")), builders.WithJobs("second", 3, 1, steer("2")),
		func(js *jobSet) { js.Spec.Suspend = ptr.To(true) }))
	place := func(suspend bool, selector map[string]string) {
		e.update(func(js *jobSet) {
			js.Spec.Suspend = ptr.To(suspend)
			for i := range js.Spec.ReplicatedJobs {
				js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.NodeSelector = selector
			}
		})
	}
	e.awaitCondition("set", jobsetv1alpha2.JobSetSuspended, "True SuspendedJobs")
	e.awaitActive(0)
	place(false, map[string]string{"example.com/nowhere": "yes"})
	// Pods that wait for a node count.
	e.awaitActive(4)
	place(true, map[string]string{"kubernetes.io/os": "linux"})
	e.awaitCondition("set", jobsetv1alpha2.JobSetSuspended, "True SuspendedJobs")
	e.awaitActive(0)
	place(false, map[string]string{"kubernetes.io/os": "linux"})
	e.awaitCompleted("set")
	for name, job := range e.jobs() {
		if diff := cmp.Diff(map[string]string{"kubernetes.io/os": "linux"}, job.Spec.Template.Spec.NodeSelector); diff != "" {
			t.Errorf("node selector of %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRow7_4_05_SchedulingGates(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.create(jobSetOf(builders.WithJobs("rjob", 2, 2, steer("1")), func(js *jobSet) { js.Spec.Suspend = ptr.To(true) }))
	e.awaitCondition("set", jobsetv1alpha2.JobSetSuspended, "True SuspendedJobs")
	gate := []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
	e.update(func(js *jobSet) {
		js.Spec.Suspend = ptr.To(false)
		js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.SchedulingGates = gate
	})
	var pods []corev1.Pod
	e.eventually(func() string {
		if pods = e.pods(""); len(pods) != 4 {
			return fmt.Sprintf("there are %d pods, want 4", len(pods))
		}
		return ""
	})
	for _, pod := range pods {
		if diff := cmp.Diff(gate, pod.Spec.SchedulingGates); diff != "" {
			t.Errorf("gates of pod %s (-want +got):\n%s", pod.Name, diff)
		}
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			current, err := shared.Kube.CoreV1().Pods(e.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			current.Spec.SchedulingGates = nil
			_, err = shared.Kube.CoreV1().Pods(e.namespace).Update(t.Context(), current, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	e.awaitCompleted("set")
}
