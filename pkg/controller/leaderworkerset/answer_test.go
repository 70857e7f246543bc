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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
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

// TestFirstCausesAreRecorded has a leader pod restart whose failure the watch of pods has shown, or has not.
func TestFirstCausesAreRecorded(t *testing.T) {
	oom := &helper.PodFailure{Cause: jobsetv1alpha2.FailureCause{Pod: "s-0", Reason: "OOMKilled"}, At: metav1.Unix(20, 0)}
	for name, tc := range map[string]struct {
		leader *helper.PodFailure
		known  bool
		want   jobsetv1alpha2.FailureCause
	}{
		"the watch has shown it":    {oom, true, jobsetv1alpha2.FailureCause{Job: "s", Pod: "s-0", Reason: "OOMKilled", Time: &oom.At}},
		"this process has not seen": {nil, false, jobsetv1alpha2.FailureCause{Job: "s", Pod: "s-0", Message: "a container of the pod restarted"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, key := controllerOfSet(t), cache.NewObjectName("ns", "s")
			set, err := c.caches.Set(key)
			if err != nil {
				t.Fatal(err)
			}
			addLeader(t, c, set, func(pod *corev1.Pod) {
				pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodRunning, []corev1.ContainerStatus{{RestartCount: 1}}
			})
			if tc.leader != nil {
				c.caches.failures.NoteFailure("child", tc.leader, false)
			}
			obs, p, _, err := c.Decided(t.Context(), key)
			if err != nil || obs == nil || p.Status == nil || len(p.Status.Groups) != 1 {
				t.Fatal(obs, p, err)
			}
			if diff := cmp.Diff(&tc.want, p.Status.Groups[0].FirstCause); diff != "" {
				t.Error("first cause (-want +got):\n" + diff)
			}
			answer := obs.Causes["child"]
			if _, known := answer.Get(); known != tc.known || answer.Open() || answer.IsNone() {
				t.Errorf("answer %+v, want known: %t", answer, tc.known)
			}
		})
	}
}

// TestCauseOfWorkersThatFailedFirst has the leader pod of a group fail after, or before, one of its workers.
func TestCauseOfWorkersThatFailedFirst(t *testing.T) {
	c := controllerOfSet(t)
	for uid, at := range map[types.UID]int64{"leader": 20, "sooner": 10, "later": 30} {
		failure := &helper.PodFailure{Cause: jobsetv1alpha2.FailureCause{Pod: string(uid)}, At: metav1.Unix(at, 0)}
		c.caches.failures.NoteFailure(uid, failure, false)
	}
	for workers, want := range map[types.UID][2]string{
		"": {"s", "leader"}, "sooner": {"s-1", "sooner"}, "later": {"s", "leader"}, "none": {"s", "leader"},
	} {
		cause := c.firstCause("s", plan.MissingCause{Leader: "leader", Name: "s-1", Workers: workers}).Value()
		if cause == nil || [2]string{cause.Job, cause.Pod} != want {
			t.Errorf("workers %q: cause %+v, want job and pod %q", workers, cause, want)
		}
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
	obs, decided, _, err := c.Decided(t.Context(), cache.NewObjectName("ns", "s"))
	if err == nil && obs != nil {
		p, results := plan.Plan{DespiteQueue: decided.DespiteQueue}, plan.Results{}
		if results, err = c.Apply(t.Context(), obs, p); err == nil {
			err = c.Finish(t.Context(), c.Conclude(obs, plan.Finish(*obs, p, results)))
		}
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
