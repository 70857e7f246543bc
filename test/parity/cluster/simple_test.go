// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestRow7_1_01_ParallelJobs(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("simple-parallel-jobs")
	e.awaitJobs("parallel-driver-0", "parallel-workers-0")
	e.awaitCompleted("parallel")
	if got := len(e.pods("parallel-workers-0")); got != 4 {
		t.Errorf("there were %d workers, want 4", got)
	}
}

func TestRow7_1_03_FailurePolicy(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("simple-failure-policy")
	jobs := []string{"blocking-leader-0", "blocking-workers-0", "blocking-workers-1"}
	e.awaitRunning("", 5)
	old := map[string]bool{}
	for _, job := range e.jobs() {
		old[string(job.UID)] = true
	}
	e.failJob("blocking-leader-0", 1)
	// No Job of the new attempt may be seen beside one of the old one.
	e.eventually(func() string {
		before, after := 0, 0
		for _, job := range e.jobs() {
			if old[string(job.UID)] {
				before++
			} else {
				after++
			}
		}
		if before > 0 && after > 0 {
			t.Fatalf("%d old Jobs are there beside %d new ones", before, after)
		}
		if after != len(jobs) {
			return fmt.Sprintf("%d of %d new Jobs are there", after, len(jobs))
		}
		return ""
	})
	e.awaitAttempt(1, jobs...)
	e.awaitRestarts("blocking", restarts{All: 1, Counted: 1})
	e.end("succeeded", e.awaitRunning("", 5))
	e.awaitCompleted("blocking")
}

func TestRow7_1_04_SuccessPolicy(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("simple-success-policy")
	e.awaitCompleted("workers-decide")
	e.awaitJobs("workers-decide-workers-0", "workers-decide-workers-1")
}

func TestRow7_1_05_TTLAfterFinished(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	// Its pods run until the Jobs were seen. A finalizer of the user keeps the set, so that it can be seen when it was deleted.
	e.example("simple-ttl-after-finished", `jobset-apiserver.io/kwok-run-seconds: "1"`, "jobset-apiserver.io/kwok-outcome: running",
		"  name: short-lived\n", "  name: short-lived\n  finalizers: [example.com/hold]\n")
	e.awaitJobs("short-lived-workers-0", "short-lived-workers-1")
	e.end("succeeded", e.awaitRunning("", 4))
	var js *jobSet
	e.eventually(func() string {
		if js = e.get("short-lived"); js.DeletionTimestamp == nil {
			return "the set is not being deleted"
		}
		return ""
	})
	end := meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.JobSetCompleted)
	if end == nil {
		t.Fatalf("the set is deleted before it has completed: %+v", js.Status)
	}
	// Both times are in seconds, rounded down, and the controller counts from the one that is stored.
	if lived := js.DeletionTimestamp.Sub(end.LastTransitionTime.Time); lived < 2*time.Second {
		t.Errorf("the set was deleted %s after its end, want 2s at least", lived)
	}
	e.finalizers("short-lived", "null")
	e.awaitGone("short-lived")
}

// finalizers replaces those of the set, without that of the deletion in the foreground.
func (e *env) finalizers(name, list string) {
	e.Helper()
	patch := fmt.Sprintf(`{"metadata":{"finalizers":%s}}`, list)
	if r := e.run("", "patch", "jobset", name, "--type=merge", "-p", patch); r.err != nil {
		e.Fatal(r)
	}
}

func TestRow7_1_06_Coordinator(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("simple-coordinator")
	e.awaitCompleted("coordinated")
	pods := e.pods("")
	if len(pods) != 5 {
		t.Errorf("there were %d pods, want 5", len(pods))
	}
	for _, pod := range pods {
		if got, want := pod.Annotations[jobsetv1alpha2.CoordinatorKey], "coordinated-driver-0-0.coordinated"; got != want {
			t.Errorf("coordinator of pod %s: got %q, want %q", pod.Name, got, want)
		}
	}
}

func TestRow7_1_07_Groups(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("simple-group")
	got := map[string]string{}
	for name, job := range e.awaitJobs("grouped-first-0", "grouped-second-0", "grouped-second-1", "grouped-third-0") {
		l := job.Spec.Template.Labels
		got[name] = fmt.Sprintf("%s %s of %s", l[jobsetv1alpha2.GroupNameKey], l[jobsetv1alpha2.JobGroupIndexKey], l[jobsetv1alpha2.GroupReplicasKey])
	}
	want := map[string]string{
		"grouped-first-0": "default 0 of 1", "grouped-second-0": "group-b 0 of 3",
		"grouped-second-1": "group-b 1 of 3", "grouped-third-0": "group-b 2 of 3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	e.awaitCompleted("grouped")
}

func TestRow7_1_08_Network(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("simple-network")
	e.awaitCompleted("networked")
	e.resolvable("networked", "training", 4)
	if _, err := shared.Kube.CoreV1().Services(e.namespace).Get(t.Context(), "networked", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("getting a Service with the name of the set: %v, want that there is none", err)
	}
}

// resolvable checks what makes DNS names of pods resolve: a headless Service that selects them, and in each pod a
// hostname of its own and the name of the Service.
func (e *env) resolvable(set, subdomain string, pods int) {
	e.Helper()
	service, err := shared.Kube.CoreV1().Services(e.namespace).Get(e.Context(), subdomain, metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone || !service.Spec.PublishNotReadyAddresses {
		e.Errorf("clusterIP %q, publishNotReadyAddresses %t; want None, true", service.Spec.ClusterIP, service.Spec.PublishNotReadyAddresses)
	}
	found := e.pods("")
	if len(found) != pods {
		e.Errorf("there were %d pods, want %d", len(found), pods)
	}
	for _, pod := range found {
		for key, value := range service.Spec.Selector {
			if pod.Labels[key] != value {
				e.Errorf("the Service selects %s=%s, pod %s has %q", key, value, pod.Name, pod.Labels[key])
			}
		}
		hostname := fmt.Sprintf("%s-%s-%s-%s", set, pod.Labels[jobsetv1alpha2.ReplicatedJobNameKey],
			pod.Labels[jobsetv1alpha2.JobIndexKey], pod.Annotations["batch.kubernetes.io/job-completion-index"])
		if pod.Spec.Hostname != hostname || pod.Spec.Subdomain != subdomain {
			e.Errorf("pod %s is %s.%s, want %s.%s", pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain, hostname, subdomain)
		}
	}
}
