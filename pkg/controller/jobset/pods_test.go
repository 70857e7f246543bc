// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/failures"
	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
)

// watched returns what the cache keeps of a pod.
func watched(t testing.TB, pod *corev1.Pod) *watchedPod {
	t.Helper()
	kept, err := newTransform(gates.Gates{})(pod)
	if err != nil {
		t.Fatal(err)
	}
	again, err := newTransform(gates.Gates{})(kept)
	if err != nil || again != kept {
		t.Fatalf("transformed twice: %v, error %v", again, err)
	}
	return kept.(*watchedPod)
}

// podOfJob returns a pod of the set js.
func podOfJob(name string, job types.UID, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", ResourceVersion: "5", Labels: map[string]string{jobsetv1alpha2.JobSetNameKey: "js"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "js-w-0", UID: job, Controller: ptr.To(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7"},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// exits ends the container of the pod for good, restarts starts it again, and stopped deletes the pod.
func exits(code int32, second int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: "Error", FinishedAt: metav1.Unix(second, 0),
		}}}}
	}
}

func restarts(code int32, second int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		exits(code, second)(pod)
		status := &pod.Status.ContainerStatuses[0]
		status.RestartCount, status.LastTerminationState, status.State = 1, status.State, corev1.ContainerState{}
	}
}

func stopped(second int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.Unix(second, 0)), ptr.To[int64](0)
	}
}

func TestPodsThatRestartInPlaceAreCountedWithTheFeatureOnly(t *testing.T) {
	for gate, want := range map[bool]bool{false: false, true: true} {
		r := newRig(t, newSet())
		r.build(t, gates.Gates{InPlaceRestart: gate})
		r.onPods().OnAdd(watched(t, podOfJob("p", "uid-0", says("0"))), false)
		diff(t, "counted", want, r.caches.inPlace != nil)
	}
}

// says has a pod say that it has reached an attempt, and named puts the name of another set on it.
func says(attempt string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{jobsetv1alpha2.InPlaceRestartAttemptKey: attempt}
	}
}

func named(set string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = map[string]string{jobsetv1alpha2.JobSetNameKey: set} }
}

// inPlaceRig has two sets, of which one restarts in place, and a Job with two pods.
func inPlaceRig(t *testing.T) (*rig, *jobsetv1alpha2.JobSet) {
	t.Helper()
	set, other := newSet(), newSet()
	set.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{RestartStrategy: jobsetv1alpha2.RestartStrategyInPlaceRestart}
	other.Name = "other"
	r := newRig(t, set)
	r.build(t, gates.Gates{InPlaceRestart: true})
	job := newJob("js-w-0", set)
	job.UID = "uid-0"
	err := errors.Join(r.caches.jobSets.GetIndexer().Add(set), r.caches.jobSets.GetIndexer().Add(other), r.caches.jobs.GetIndexer().Add(job))
	if err != nil {
		t.Fatal(err)
	}
	return r, set
}

func TestPodsThatRestartInPlaceAreObserved(t *testing.T) {
	r, set := inPlaceRig(t)
	inits := func(pod *corev1.Pod) {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "i", RestartCount: 2}}
	}
	pod := watched(t, podOfJob("p", "uid-0", says("3"), restarts(1, 1), inits))
	if err := r.caches.pods.GetIndexer().Add(pod); err != nil {
		t.Fatal(err)
	}
	r.onPods().OnAdd(pod, true)
	r.onPods().OnAdd(watched(t, podOfJob("q", "uid-0")), true)
	obs, _, _, err := r.Decided(t.Context(), cache.MetaObjectToName(set))
	if err != nil {
		t.Fatal(err)
	}
	want := planinplace.State{Pods: 1, Lowest: 3, Highest: 3, First: "p", Order: 1, ContainerRestarts: 2}
	diff(t, "pods", map[types.UID]planinplace.State{"uid-0": want}, obs.InPlace.Value())
}

func TestSetsThatRestartInPlaceAreLookedAt(t *testing.T) {
	before := podOfJob("p", "uid-0", says("3"))
	for name, tc := range map[string]struct {
		after *corev1.Pod
		want  int
	}{
		"nothing that matters changed":                        {podOfJob("p", "uid-0", says("3"), exits(1, 9)), 0},
		"the attempt changed":                                 {podOfJob("p", "uid-0", says("4")), 1},
		"a container restarted":                               {podOfJob("p", "uid-0", says("3"), restarts(1, 9)), 1},
		"the pod belongs to another set":                      {podOfJob("p", "uid-1", says("3"), named("other")), 1},
		"the pod is one of another Job":                       {podOfJob("p", "uid-1", says("3")), 1},
		"the pod is gone":                                     {nil, 1},
		"the pod is one of a set that does not restart there": {podOfJob("q", "uid-1", says("3"), named("other")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := inPlaceRig(t)
			handle := r.onPods()
			r.caches.inPlace.Show(watched(t, before).counts())
			switch {
			case tc.after == nil:
				handle.OnDelete(watched(t, before))
			case tc.after.Name != before.Name:
				handle.OnAdd(watched(t, tc.after), false)
			default:
				handle.OnUpdate(watched(t, before), watched(t, tc.after))
			}
			diff(t, "sets to look at", tc.want, r.queue.Len())
		})
	}
}

// TestPodEventsDoNotEnqueueSets has many pods come, change and go in a cluster that restarts nothing in place.
func TestPodEventsDoNotEnqueueSets(t *testing.T) {
	set := newSet()
	r := newRig(t, set)
	if err := r.caches.jobSets.GetIndexer().Add(set); err != nil {
		t.Fatal(err)
	}
	handle := r.onPods()
	for i := range 1000 {
		before := watched(t, podOfJob(fmt.Sprint("p-", i), "uid-0"))
		after := watched(t, podOfJob(before.Name, "uid-0", exits(1, int64(i))))
		handle.OnAdd(before, false)
		handle.OnUpdate(before, after)
		handle.OnDelete(after)
	}
	diff(t, "sets to look at", 0, r.queue.Len())
	diff(t, "first failure", "p-0", r.failures.First("uid-0").Cause.Pod)
	diff(t, "failures that are remembered", failures.PerJob, r.failures.Count("uid-0"))
}

func TestFailuresOutlivePods(t *testing.T) {
	type pods = []*corev1.Pod
	gone := func(pod *corev1.Pod) any { return watched(t, pod) }
	for name, tc := range map[string]struct {
		// states are the states that the watch shows of a pod, one after the other.
		states pods
		// gone is what the watch shows of its end.
		gone any
		want string
	}{
		"a pod that was deleted at once": {
			states: pods{podOfJob("p", "uid-0"), podOfJob("p", "uid-0", exits(137, 1))},
			gone:   gone(podOfJob("p", "uid-0", exits(137, 1), stopped(1))), want: "p on n1: main 137 Error"},
		"a pod that is first seen when it is gone": {
			gone: gone(podOfJob("p", "uid-0", exits(3, 1), stopped(2))), want: "p on n1: main 3 Error"},
		"a container that was started again": {
			states: pods{podOfJob("p", "uid-0", restarts(2, 1))},
			gone:   gone(podOfJob("p", "uid-0", exits(143, 5), stopped(4))), want: "p on n1: main 2 Error"},
		"the last failure of a container": {
			states: pods{podOfJob("p", "uid-0", restarts(2, 1)), podOfJob("p", "uid-0", restarts(4, 9))}, want: "p on n1: main 4 Error"},
		"a pod that was lost with its node": {
			states: pods{podOfJob("p", "uid-0")},
			gone: gone(podOfJob("p", "uid-0", stopped(2), func(pod *corev1.Pod) {
				pod.Status.Phase = corev1.PodFailed
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"}}
			})), want: "p on n1:  0 DeletionByPodGC"},
		"a pod that was stopped": {
			states: pods{podOfJob("p", "uid-0")}, gone: gone(podOfJob("p", "uid-0", exits(143, 5), stopped(4)))},
		"a pod of another Job": {states: pods{podOfJob("p", "uid-1", exits(1, 1))}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newSet())
			handle := r.onPods()
			for i, state := range tc.states {
				if i == 0 {
					handle.OnAdd(watched(t, state), false)
					continue
				}
				handle.OnUpdate(watched(t, tc.states[i-1]), watched(t, state))
			}
			if tc.gone != nil {
				handle.OnDelete(tc.gone)
			}
			failed := newJob("js-w-0", newSet())
			failed.UID = "uid-0"
			var got string
			if first := r.failures.First("uid-0"); first != nil {
				c := first.Cause
				got = fmt.Sprintf("%s on %s: %s %d %s", c.Pod, c.Node, c.Container, ptr.Deref(c.ExitCode, 0), c.Reason)
			}
			diff(t, "first failure", tc.want, got)
			r.onJobs().OnDelete(failed)
			diff(t, "failure once the Job is gone", (*helper.PodFailure)(nil), r.failures.First(failed.UID))
		})
	}
}

// TestKnownFailureCostsNoRequest has a Job whose pods are gone when it fails.
func TestKnownFailureCostsNoRequest(t *testing.T) {
	set := setInAttempt()
	r := newRig(t, set)
	r.onPods().OnDelete(watched(t, podOfJob("p", "uid-0", exits(137, 1))))
	failed := newJob("js-w-0", set)
	failed.UID, failed.Labels[jobsetv1alpha2.RestartsKey], failed.Labels[jobsetv1alpha2.ReplicatedJobNameKey] = "uid-0", "0", "w"
	failed.Labels[jobsetv1alpha2.JobIndexKey] = "0"
	failed.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}
	if err := errors.Join(r.caches.jobSets.GetIndexer().Add(set), r.caches.jobs.GetIndexer().Add(failed)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Sync(t.Context(), cache.MetaObjectToName(set)); err != nil {
		t.Fatal(err)
	}
	diff(t, "exit code", ptr.To[int32](137), r.set(t).Status.Attempts[0].FirstCause.ExitCode)
	diff(t, "lists", 0, len(r.podLists()))
}
