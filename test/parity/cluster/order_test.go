// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strconv"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// order holds the resource version at which something first happened to a Job of the namespace. All Jobs and pods are in one
// store, so their resource versions come in the order of the writes, where times have whole seconds.
type order struct {
	mu    sync.Mutex
	first map[moment]uint64
}

// moment is something that happens to a Job.
type moment struct{ job, what string }

func (m moment) String() string { return "Job " + m.job + " is " + m.what }

func created(job string) moment  { return moment{job, "created"} }
func complete(job string) moment { return moment{job, "complete"} }
func ready(job string) moment    { return moment{job, "ready"} }

func (o *order) note(m moment, version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.first[m]; known {
		return
	}
	// What cannot be parsed is missing, which the test reports.
	if n, err := strconv.ParseUint(version, 10, 64); err == nil {
		o.first[m] = n
	}
}

func (o *order) get(m moment) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first[m]
}

// record watches the Jobs and pods of the namespace, which has none yet.
func (e *env) record() *order {
	e.Helper()
	o := &order{first: map[moment]uint64{}}
	jobs, err := shared.Kube.BatchV1().Jobs(e.namespace).Watch(e.Context(), metav1.ListOptions{})
	if err != nil {
		e.Fatal(err)
	}
	pods, err := shared.Kube.CoreV1().Pods(e.namespace).Watch(e.Context(), metav1.ListOptions{})
	if err != nil {
		e.Fatal(err)
	}
	go func() {
		for event := range jobs.ResultChan() {
			if job, ok := event.Object.(*batchv1.Job); ok {
				o.note(created(job.Name), job.ResourceVersion)
				if jobHas(job, batchv1.JobComplete) {
					o.note(complete(job.Name), job.ResourceVersion)
				}
			}
		}
	}()
	go func() {
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if ok && slices.ContainsFunc(pod.Status.Conditions, isReady) {
				o.note(ready(pod.Labels[batchv1.JobNameLabel]), pod.ResourceVersion)
			}
		}
	}()
	return o
}

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// inOrder checks that the moments came one after the other.
func (e *env) inOrder(o *order, moments ...moment) {
	e.Helper()
	for i := range moments {
		e.eventually(func() string {
			if o.get(moments[i]) == 0 {
				return "not seen: " + moments[i].String()
			}
			return ""
		})
		if i > 0 && o.get(moments[i-1]) >= o.get(moments[i]) {
			e.Errorf("%s at version %d, want it after %s at version %d",
				moments[i], o.get(moments[i]), moments[i-1], o.get(moments[i-1]))
		}
	}
}

func TestRow7_1_09_StartupPolicy(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	o := e.record()
	e.example("startup-driver-ready")
	e.awaitCompleted("in-order")
	e.inOrder(o, ready("in-order-driver-0"), created("in-order-workers-0"))
	e.inOrder(o, ready("in-order-driver-0"), created("in-order-workers-1"))
	e.awaitCondition("in-order", jobsetv1alpha2.JobSetStartupPolicyCompleted, "True InOrderStartupPolicyCompleted")
	if probe := e.pods("in-order-driver-0")[0].Spec.Containers[0].ReadinessProbe; probe == nil {
		t.Error("the driver has lost its readiness probe")
	}
}

func TestRow7_1_10_DependsOn(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	o := e.record()
	e.example("depends-on")
	e.awaitJobs("steps-initializer-0", "steps-launcher-0", "steps-workers-0", "steps-workers-1")
	e.inOrder(o, complete("steps-initializer-0"), created("steps-launcher-0"), ready("steps-launcher-0"), created("steps-workers-0"))
	e.inOrder(o, ready("steps-launcher-0"), created("steps-workers-1"))
	if probe := e.pods("steps-launcher-0")[0].Spec.Containers[0].StartupProbe; probe == nil {
		t.Error("the launcher has lost its startup probe")
	}
	e.succeed("steps-launcher-0", 1)
	e.awaitCompleted("steps")
}

func TestRow7_1_11_SeveralDependencies(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	o := e.record()
	e.example("depends-on-multiple")
	e.eventually(func() string {
		if !jobHas(e.jobs()["both-dataset-0"], batchv1.JobComplete) {
			return "the first initializer is not complete"
		}
		return ""
	})
	e.awaitRunning("both-model-0", 1)
	e.awaitJobs("both-dataset-0", "both-model-0")
	e.succeed("both-model-0", 1)
	e.awaitCompleted("both")
	e.inOrder(o, complete("both-dataset-0"), created("both-worker-0"))
	e.inOrder(o, complete("both-model-0"), created("both-worker-0"))
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
