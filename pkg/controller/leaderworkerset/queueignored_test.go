// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// TestIgnoredQueueIsReportedOnce asks for Kueue only about sets with a queue, and believes nothing but that it is absent.
func TestIgnoredQueueIsReportedOnce(t *testing.T) {
	ignored := []string{"Warning QueueIgnored the label kueue.x-k8s.io/queue-name names the queue team, but the cluster does not serve kueue.x-k8s.io: " +
		"Kueue is not installed, so that the set runs without quota"}
	held := func(pod *corev1.Pod) {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "other"}, {Name: "kueue.x-k8s.io/admission"}}
	}
	for name, tc := range map[string]struct {
		change func(*leaderworkersetv1.LeaderWorkerSet)
		pods   func(*corev1.Pod)
		kueue  kueue.Availability
		want   []string
		asked  bool
	}{
		"Kueue is absent":              {kueue: kueue.Absent, want: ignored, asked: true},
		"Kueue is there":               {kueue: kueue.Served, asked: true},
		"it is not known":              {kueue: kueue.Unknown, asked: true},
		"no queue":                     {change: func(set *leaderworkersetv1.LeaderWorkerSet) { set.Labels = nil }, kueue: kueue.Absent},
		"it is being deleted":          {change: func(set *leaderworkersetv1.LeaderWorkerSet) { set.DeletionTimestamp = ptr.To(metav1.Now()) }, kueue: kueue.Absent},
		"Kueue has held a pod of it":   {pods: held, kueue: kueue.Absent},
		"a pod waits for another gate": {pods: func(pod *corev1.Pod) { pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "other"}} }, kueue: kueue.Absent, want: ignored, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, key, asked := controllerOfSet(t), cache.NewObjectName("ns", "s"), false
			recorder := events.NewFakeRecorder(10)
			c.Loop.Recorder = recorder
			c.deps.Kueue = func(context.Context) kueue.Availability {
				asked = true
				return tc.kueue
			}
			set, err := c.caches.Set(key)
			if err != nil {
				t.Fatal(err)
			}
			set.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "team"}
			if tc.change != nil {
				tc.change(set)
			}
			if tc.pods != nil {
				addLeader(t, c, set, tc.pods)
			}
			if diff := cmp.Diff(tc.want, reported(t, c, recorder)); diff != "" || asked != tc.asked {
				t.Errorf("asked for Kueue: %t, want %t; events (-want +got):\n%s", asked, tc.asked, diff)
			}
			if again := reported(t, c, recorder); again != nil {
				t.Errorf("reported again: %q", again)
			}
			set.UID = "another"
			if tc.pods != nil {
				return // the pods belong to the former set
			}
			if diff := cmp.Diff(tc.want, reported(t, c, recorder)); diff != "" {
				t.Error("another set of the name (-want +got):\n" + diff)
			}
			if c.Forget(key); c.queueReported.Noted(key) != "" {
				t.Error("a set that is gone is remembered")
			}
		})
	}
}

// addLeader adds a leader pod, and its StatefulSet.
func addLeader(t *testing.T, c *Controller, set *leaderworkersetv1.LeaderWorkerSet, change func(*corev1.Pod)) {
	t.Helper()
	sts := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: set.Name, UID: "leaders", Labels: map[string]string{leaderworkersetv1.SetNameLabelKey: set.Name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: leaderworkersetv1.SchemeGroupVersion.String(), Kind: kindSet, Name: set.Name, UID: set.UID, Controller: ptr.To(true)}},
	}}
	meta := childMeta("s-0", "0")
	meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: sts.Name, UID: sts.UID, Controller: ptr.To(true)}}
	pod := &corev1.Pod{ObjectMeta: meta}
	change(pod)
	err := c.caches.statefulSets.GetIndexer().Add(sts)
	if err == nil {
		err = c.caches.pods.GetIndexer().Add(newWatchedPod(pod))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reported returns the events of a pass that writes nothing.
func reported(t *testing.T, c *Controller, recorder *events.FakeRecorder) []string {
	t.Helper()
	obs, _, err := c.Observe(t.Context(), cache.NewObjectName("ns", "s"))
	if err == nil && obs != nil {
		err = c.Finish(t.Context(), c.Conclude(obs, plan.Finish(*obs, plan.Plan{}, plan.Results{})))
	}
	if err != nil || obs == nil {
		t.Fatal(obs, err)
	}
	var got []string
	for len(recorder.Events) > 0 {
		got = append(got, <-recorder.Events)
	}
	return got
}
