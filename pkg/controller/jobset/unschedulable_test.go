// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/failures"
)

func unscheduled(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
	}
}

func TestUnschedulablePodsAreCounted(t *testing.T) {
	r := newRig(t, newSet())
	const reason = "0/20 nodes are available: 20 Insufficient cpu."
	for _, pod := range []*corev1.Pod{
		podOfJob("js-w-1-0-abcde", "u1", unscheduled("Unschedulable", reason)),
		podOfJob("js-w-2-0-abcde", "u2", unscheduled("Unschedulable", strings.Repeat("x", 5000))),
		podOfJob("js-w-0-0-abcde", "u0", unscheduled("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")),
		podOfJob("js-w-3-0-abcde", "u3", unscheduled("Unschedulable", reason), stopped(0)),
		podOfJob("js-w-4-0-abcde", "u4"),
	} {
		if err := r.caches.pods.GetIndexer().Add(watched(t, pod)); err != nil {
			t.Fatal(err)
		}
	}
	key := cache.NewObjectName("ns", "js")
	pods, got, err := r.caches.Unschedulable(key)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "pods", 2, pods)
	diff(t, "reason", reason, got)
	first, err := r.unschedulableSince(t, key)
	diff(t, "error", "", errorText(err))
	again, err := r.unschedulableSince(t, key)
	diff(t, "error", "", errorText(err))
	diff(t, "since when, and again", first, again)
	long := watched(t, podOfJob("js-w-2-0-abcde", "u2", unscheduled("Unschedulable", strings.Repeat("x", 5000))))
	diff(t, "length of a long reason", failures.MaxReason, len(long.Reason()))
}

func (r *rig) unschedulableSince(t *testing.T, key cache.ObjectName) (time.Time, error) {
	t.Helper()
	if err := r.caches.jobSets.GetIndexer().Add(newSet()); err != nil {
		t.Fatal(err)
	}
	obs, _, err := r.Observe(t.Context(), key)
	if err != nil {
		return time.Time{}, err
	}
	return obs.Unschedulable.Since, nil
}

func TestPodsThatAreScheduledWakeTheirSet(t *testing.T) {
	waits, runs := podOfJob("js-w-0-0-abcde", "u", unscheduled("Unschedulable", "full")), podOfJob("js-w-0-0-abcde", "u")
	preempts := waits.DeepCopy()
	preempts.Status.NominatedNodeName = "node"
	for name, tc := range map[string]struct {
		was, is *corev1.Pod
		want    int
	}{
		"a pod that waits":                  {nil, waits, 1},
		"a pod that begins to wait":         {runs, waits, 1},
		"a pod that has found a node":       {waits, runs, 1},
		"a pod that is gone":                {waits, nil, 1},
		"a pod that goes on to wait":        {waits, waits, 0},
		"a pod for which room is made":      {waits, preempts, 1},
		"a pod for which no room is made":   {preempts, waits, 1},
		"a pod that runs":                   {nil, runs, 0},
		"a pod that is gone and has a node": {runs, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newSet())
			handlers := r.onPods()
			switch {
			case tc.was == nil:
				handlers.OnAdd(watched(t, tc.is.DeepCopy()), false)
			case tc.is == nil:
				handlers.OnDelete(watched(t, tc.was.DeepCopy()))
			default:
				handlers.OnUpdate(watched(t, tc.was.DeepCopy()), watched(t, tc.is.DeepCopy()))
			}
			diff(t, "sets to look at", tc.want, r.queue.Len())
		})
	}
}
