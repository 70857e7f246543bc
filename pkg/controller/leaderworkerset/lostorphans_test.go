// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// TestLossesOfOrphans has the only worker of a group vanish while the StatefulSet of the workers has no controller: the worker is lost if the
// leader adopts the StatefulSet.
func TestLossesOfOrphans(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(sts *appsv1.StatefulSet)
		want   int
	}{
		"the leader controls it":              {change: func(*appsv1.StatefulSet) {}, want: 1},
		"nothing controls it":                 {change: orphaned, want: 1},
		"it is older than the leader":         {change: func(sts *appsv1.StatefulSet) { orphaned(sts); sts.CreationTimestamp = metav1.Unix(1_000, 0) }},
		"it is of another revision":           {change: func(sts *appsv1.StatefulSet) { orphaned(sts); sts.Labels[leaderworkersetv1.RevisionKey] = "b" }},
		"it is being deleted":                 {change: func(sts *appsv1.StatefulSet) { orphaned(sts); sts.DeletionTimestamp = ptr.To(metav1.Unix(3_000, 0)) }},
		"it selects other pods":               {change: func(sts *appsv1.StatefulSet) { orphaned(sts); sts.Spec.Selector = &metav1.LabelSelector{} }},
		"another pod of the name controls it": {change: func(sts *appsv1.StatefulSet) { sts.OwnerReferences[0].UID = "another" }},
	} {
		t.Run(name, func(t *testing.T) {
			c := controllerOfSet(t)
			leader := &corev1.Pod{ObjectMeta: childMeta("s-1", "0")}
			leader.UID, leader.CreationTimestamp = "leader", metav1.NewTime(time.Unix(2_000, 0))
			leader.Labels[leaderworkersetv1.RevisionKey] = "a"
			sts := workersOfLeader()
			tc.change(sts)
			if err := c.caches.pods.GetIndexer().Add(newWatchedPod(leader)); err != nil {
				t.Fatal(err)
			}
			if err := c.caches.statefulSets.GetIndexer().Add(newWatchedWorkers(sts)); err != nil {
				t.Fatal(err)
			}
			worker := &corev1.Pod{ObjectMeta: childMeta("s-1-1", "1"), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			worker.OwnerReferences[0].Kind, worker.OwnerReferences[0].UID = "StatefulSet", sts.UID
			worker.Annotations = map[string]string{leaderworkersetv1.LeaderPodNameAnnotationKey: "s-1", leaderworkersetv1.SizeAnnotationKey: "2"}
			c.onPods().OnAdd(newWatchedPod(worker), false)
			c.onPods().OnDelete(newWatchedPod(worker))
			got := plan.Workers{Ref: plan.Ref{UID: sts.UID}}
			if c.caches.losses.Fill(&got); got.Lost != tc.want {
				t.Errorf("%d workers are lost, want %d", got.Lost, tc.want)
			}
		})
	}
}

func orphaned(sts *appsv1.StatefulSet) { sts.OwnerReferences = nil }

// workersOfLeader returns the StatefulSet of the workers of the leader pod s-1.
func workersOfLeader() *appsv1.StatefulSet {
	sts := &appsv1.StatefulSet{ObjectMeta: childMeta("s-1", "")}
	sts.UID, sts.CreationTimestamp = "workers", metav1.Unix(2_001, 0)
	sts.Labels[leaderworkersetv1.RevisionKey] = "a"
	sts.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{
		leaderworkersetv1.SetNameLabelKey: "s", leaderworkersetv1.GroupIndexLabelKey: "1", leaderworkersetv1.GroupKeyLabelKey: helper.GroupKey("ns", "s-1"),
	}}
	return sts
}
