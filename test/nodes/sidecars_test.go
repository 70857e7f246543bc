// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// servingSet is a set whose pods serve beside a sidecar, which would run on without end.
func servingSet(name string, pods int32) *jobsetv1alpha2.JobSet {
	js := set(name, 1, pods)
	pod := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	serving(&pod.Containers[0])
	pod.InitContainers = []corev1.Container{{Name: "sidecar", Image: localcluster.ProgramImage, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	return js
}

// debug adds an ephemeral container to a pod, as kubectl debug does, and waits until it has ended with this exit code.
func (e *env) debug(name string, code int) {
	e.Helper()
	pods := core.CoreV1().Pods(e.namespace)
	framework.Eventually(e, "the debug container is added to "+name, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
			TargetContainerName: "main",
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debugger", Image: localcluster.ProgramImage, Args: []string{"exit", fmt.Sprint(code)}, ImagePullPolicy: corev1.PullIfNotPresent,
			},
		}}
		_, err = pods.UpdateEphemeralContainers(ctx, name, pod, metav1.UpdateOptions{})
		return err
	})
	framework.Eventually(e, "the debug container of "+name+" has ended", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, status := range pod.Status.EphemeralContainerStatuses {
			if ended := status.State.Terminated; ended != nil && int(ended.ExitCode) == code {
				return nil
			}
		}
		return fmt.Errorf("statuses are %+v", pod.Status.EphemeralContainerStatuses)
	})
}

// TestSidecarsAndDebuggers runs sets whose pods have a sidecar, and debugs a pod of each with a container that fails.
// One set completes although its sidecars run; the first cause of the other one is the main container.
func TestSidecarsAndDebuggers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(servingSet("good", 2))
	e.create(servingSet("bad", 1))

	pods := e.running(ofSet("good"), 2)
	e.debug(pods[0].Name, 3)
	for i := range pods {
		if status := pods[i].Status.InitContainerStatuses; len(status) != 1 || status[0].State.Running == nil {
			t.Errorf("the sidecar of %s is %+v", pods[i].Name, status)
		}
		e.end(&pods[i], 0)
	}
	js := e.ended("good", jobsetv1alpha2.JobSetCompleted)
	if attempt := js.Status.Attempts[0]; len(js.Status.Attempts) != 1 || attempt.FirstCause != nil {
		t.Errorf("attempts are %+v", js.Status.Attempts)
	}

	pod := e.running(ofSet("bad"), 1)[0]
	e.debug(pod.Name, 3)
	e.end(&pod, 7)
	js = e.ended("bad", jobsetv1alpha2.JobSetFailed)
	if cause := e.firstCause(js); cause.Container != "main" || ptr.Deref(cause.ExitCode, 0) != 7 {
		t.Errorf("first cause is %+v", cause)
	}
}

// TestDebuggerLeavesGroupAlone debugs the leader of a group that is recreated when one of its containers restarts.
func TestDebuggerLeavesGroupAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	container := corev1.Container{Name: "main", Image: localcluster.ProgramImage}
	serving(&container)
	sets := jobsets.LeaderworkersetV1().LeaderWorkerSets(e.namespace)
	lws := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: "debugged"}}
	lws.Spec.LeaderWorkerTemplate = leaderworkersetv1.LeaderWorkerTemplate{
		GroupSize:      ptr.To[int32](2),
		WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](1), Containers: []corev1.Container{container}}},
	}
	created, err := sets.Create(t.Context(), lws, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const selector = leaderworkersetv1.SetNameLabelKey + "=debugged"
	before := e.running(selector, 2)
	e.debug("debugged-0", 3)
	// What the controller does next it does to a change that comes after the end of the debugger.
	patch := []byte(`[{"op": "replace", "path": "/spec/replicas", "value": 2}]`)
	if _, err := sets.Patch(t.Context(), created.Name, "application/json-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "there are two groups", func(ctx context.Context) error {
		lws, err := sets.Get(ctx, created.Name, metav1.GetOptions{})
		if err == nil && (lws.Status.ReadyReplicas != 2 || !meta.IsStatusConditionTrue(lws.Status.Conditions, leaderworkersetv1.ConditionAvailable)) {
			err = fmt.Errorf("status is %+v", lws.Status)
		}
		return err
	})
	after := map[string]bool{}
	for _, pod := range e.running(selector, 4) {
		after[string(pod.UID)] = true
	}
	for _, pod := range before {
		if !after[string(pod.UID)] {
			t.Errorf("%s was recreated", pod.Name)
		}
	}
}

// TestEvictionIsIgnored evicts a pod of a set whose podFailurePolicy ignores disruptions: the Job replaces the pod, and
// the set is not restarted.
func TestEvictionIsIgnored(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	js := servingSet("evicted", 2)
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	js.Spec.ReplicatedJobs[0].Template.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
	e.create(js)
	pod := e.running(ofSet("evicted"), 2)[0]
	err := core.CoreV1().Pods(e.namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}})
	if err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, pod.Name+" is replaced", func(ctx context.Context) error {
		if _, err := core.CoreV1().Pods(e.namespace).Get(ctx, pod.Name, metav1.GetOptions{}); err == nil {
			return fmt.Errorf("%s still exists", pod.Name)
		}
		return nil
	})
	pods := e.running(ofSet("evicted"), 2)
	for i := range pods {
		e.end(&pods[i], 0)
	}
	done := e.ended("evicted", jobsetv1alpha2.JobSetCompleted)
	if done.Status.Restarts != 0 || len(done.Status.Attempts) != 1 || done.Status.Attempts[0].FirstCause != nil {
		t.Errorf("%d restarts, attempts %+v", done.Status.Restarts, done.Status.Attempts)
	}
}
