// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// The agent, which restarts the containers, follows. What it is given can be seen.
func TestRow7_1_20_InPlaceRestart(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	if framework.OlderThan(t, shared.Kube.Discovery(), "v1.35.0") {
		t.Skip("Kubernetes before 1.35 drops the restart rules of containers")
	}
	for example, set := range map[string]string{"in-place-restart-main": "in-place", "in-place-restart-sidecar": "in-place-sidecar"} {
		t.Run(example, func(t *testing.T) {
			e := newEnv(t)
			e.example(example)
			for _, pod := range e.awaitRunning("", 4) {
				if rules := pod.Spec.Containers[0].RestartPolicyRules; len(rules) != 1 || rules[0].Action != corev1.ContainerRestartRuleActionRestart {
					t.Errorf("restart rules of pod %s: %v", pod.Name, rules)
				}
			}
			for name, job := range e.jobs() {
				if *job.Spec.BackoffLimit != 2147483647 || *job.Spec.PodReplacementPolicy != "Failed" {
					t.Errorf("Job %s has backoffLimit %d, podReplacementPolicy %s", name, *job.Spec.BackoffLimit, *job.Spec.PodReplacementPolicy)
				}
			}
			e.end("succeeded", e.awaitRunning("", 4))
			js := e.awaitCompleted(set)
			if diff := cmp.Diff(restarts{}, restartsOf(js)); diff != "" {
				t.Errorf("restarts (-want +got):\n%s", diff)
			}
		})
	}
}

// as returns clients of a service account of the namespace.
func (e *env) as(account string) (kubernetes.Interface, versioned.Interface) {
	e.Helper()
	config := rest.CopyConfig(shared.REST)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + e.namespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + e.namespace, "system:authenticated"},
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		e.Fatal(err)
	}
	sets, err := versioned.NewForConfig(config)
	if err != nil {
		e.Fatal(err)
	}
	return kube, sets
}

func TestRow7_1_21_InPlaceRestartServiceAccount(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("in-place-restart-service-account")
	e.example("in-place-restart-main")
	pod := e.awaitRunning("", 4)[0].Name
	kube, sets := e.as("restart-agent")
	js, err := sets.JobsetV1alpha2().JobSets(e.namespace).Get(t.Context(), "in-place", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("the agent must read its set: %v", err)
	}
	if _, err := sets.JobsetV1alpha2().JobSets(e.namespace).Update(t.Context(), js, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("updating the set as the agent: %v, want that it is forbidden", err)
	}
	if _, err := sets.JobsetV1alpha2().JobSets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing the sets of another namespace as the agent: %v, want that it is forbidden", err)
	}
	writes := 0
	annotate := func(key string) error {
		// A value of its own, since a write that changes nothing is not refused.
		writes++
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, key, writes)
		_, err := kube.CoreV1().Pods(e.namespace).Patch(t.Context(), pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	if err := annotate(jobsetv1alpha2.InPlaceRestartAttemptKey); err != nil {
		t.Errorf("the agent must write its annotation: %v", err)
	}
	// The policy acts a moment after it was made.
	e.eventually(func() string {
		if err := annotate("example.com/other"); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Sprintf("writing another annotation as the agent: %v, want that it is refused", err)
		}
		return ""
	})
}

func TestRow7_1_22_SharedVolumeClaims(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	o := e.record()
	e.example("volume-claim-policy")
	e.awaitCompleted("volumes")
	e.inOrder(o, complete("volumes-initializer-0"), created("volumes-workers-0"))
	for _, pod := range e.pods("") {
		got := map[string]string{}
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				got[volume.Name] = volume.PersistentVolumeClaim.ClaimName
			}
		}
		want := map[string]string{"dataset": "dataset-volumes", "checkpoints": "checkpoints-volumes"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("claims of pod %s (-want +got):\n%s", pod.Name, diff)
		}
	}
	e.claimsAfterDeletion("volumes", []string{"checkpoints-volumes", "dataset-volumes"}, []string{"checkpoints-volumes"})
}

// claimsAfterDeletion deletes the set, which has the claims of before, and waits until those of after are left.
func (e *env) claimsAfterDeletion(set string, before, after []string) {
	e.Helper()
	names := func() []string {
		list, err := shared.Kube.CoreV1().PersistentVolumeClaims(e.namespace).List(e.Context(), metav1.ListOptions{})
		if err != nil {
			e.Fatal(err)
		}
		found := map[string]bool{}
		for _, c := range list.Items {
			found[c.Name] = true
		}
		return sortedKeys(found)
	}
	if diff := cmp.Diff(before, names()); diff != "" {
		e.Errorf("claims of the set (-want +got):\n%s", diff)
	}
	if err := e.sets.Delete(e.Context(), set, metav1.DeleteOptions{}); err != nil {
		e.Fatal(err)
	}
	e.awaitGone(set)
	e.eventually(func() string { return cmp.Diff(after, names()) })
}

func TestRow7_1_23_PyTorch(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	for _, example := range []string{"pytorch-mnist", "pytorch-resnet"} {
		t.Run(example, func(t *testing.T) {
			e := newEnv(t)
			e.example(example)
			e.awaitCompleted("pytorch")
			e.resolvable("pytorch", "pytorch", 4)
			for _, pod := range e.pods("") {
				name := pod.Spec.Hostname + "." + pod.Spec.Subdomain
				first := pod.Annotations["batch.kubernetes.io/job-completion-index"] == "0"
				if env := pod.Spec.Containers[0].Env; (name == env[0].Value) != first {
					t.Errorf("pod %s is the master %s: %t, want %t", name, env[0].Value, !first, first)
				}
				rank := pod.Spec.Containers[0].Env[2].ValueFrom
				if rank == nil || rank.FieldRef == nil || rank.FieldRef.FieldPath != "metadata.annotations['batch.kubernetes.io/job-completion-index']" {
					t.Errorf("rank of pod %s comes from %v", pod.Name, rank)
				}
			}
		})
	}
}

func TestRow7_1_24_TensorFlow(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("tensorflow-mnist")
	job := e.awaitJobs("tensorflow-tensorflow-0")["tensorflow-tensorflow-0"]
	if *job.Spec.BackoffLimit != 5 || *job.Spec.Parallelism != 2 || *job.Spec.Completions != 2 {
		t.Errorf("Job has backoffLimit %d and size %d/%d, want 5 and 2/2", *job.Spec.BackoffLimit, *job.Spec.Parallelism, *job.Spec.Completions)
	}
	if got := job.Spec.Template.Spec.RestartPolicy; got != corev1.RestartPolicyOnFailure {
		t.Errorf("restart policy: got %s, want OnFailure, which is the default", got)
	}
	e.awaitCompleted("tensorflow")
}
