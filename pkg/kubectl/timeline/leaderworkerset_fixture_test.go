// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

const oldKey, newKey = "5b8f7c9d44", "6859c84d69"

// replicasOf collects the objects of a set.
type replicasOf struct {
	set       *leaderworkersetv1.LeaderWorkerSet
	leaders   *appsv1.StatefulSet
	sets      []appsv1.StatefulSet
	pods      []corev1.Pod
	revisions []*appsv1.ControllerRevision
}

func newReplicasOf(replicas int32, change ...func(*leaderworkersetv1.LeaderWorkerSet)) *replicasOf {
	set := builders.LeaderWorkerSet("vllm", replicas, 2, change...)
	set.Namespace, set.CreationTimestamp, set.Status.ObservedGeneration = "team-a", metav1.NewTime(noon), 1
	g := &replicasOf{set: set, leaders: builders.LeaderStatefulSet(set, newKey)}
	g.sets = append(g.sets, *g.leaders)
	return g
}

// replica adds a replica whose leader is created at a second, and ready at another; never for 0.
func (g *replicasOf) group(index int, key string, created, ready float64) {
	born := func(second float64) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.CreationTimestamp, pod.Labels[leaderworkersetv1.RevisionKey] = metav1.NewTime(after(second)), key
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(after(ready))}}
			if ready == 0 {
				pod.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(after(second))}
			}
		}
	}
	leader := builders.LeaderPod(g.set, g.leaders, index, born(created))
	workers := builders.WorkerStatefulSet(g.set, leader, func(s *appsv1.StatefulSet) {
		if ready == 0 {
			s.Status.AvailableReplicas = 0
		}
	})
	g.sets = append(g.sets, *workers)
	g.pods = append(g.pods, *leader, *builders.WorkerPod(g.set, workers, 1, born(created+60)))
}

// revision adds a revision that is created at a second.
func (g *replicasOf) revision(number int64, key string, created float64) {
	g.revisions = append(g.revisions, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("vllm-%s-%d", key, number), Namespace: "team-a", CreationTimestamp: metav1.NewTime(after(created)),
			Labels:          map[string]string{leaderworkersetv1.SetNameLabelKey: "vllm", leaderworkersetv1.RevisionKey: key},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(g.set, leaderworkersetv1.SchemeGroupVersion.WithKind("LeaderWorkerSet"))},
		},
		Revision: number,
	})
}

func (g *replicasOf) timeline(second float64) *LeaderWorkerSetTimeline {
	return buildLeaderWorkerSet(snapshot.AssembleLeaderWorkerSet(g.set, g.sets, g.pods, after(second)), g.revisions)
}

func cause(pod string, second float64) *jobsetv1alpha2.FailureCause {
	return &jobsetv1alpha2.FailureCause{
		Job: pod[:len("vllm-0")], Pod: pod, Node: "node-017", Container: "main", ExitCode: ptr.To[int32](137), Reason: "OOMKilled", Time: ptr.To(metav1.NewTime(after(second))),
	}
}

// rolling is a set that is being updated. Its replica 1 was recreated four times, and its replica 3 is not created yet.
func rolling() *replicasOf {
	g := newReplicasOf(4, func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Status.ReadyReplicas, set.Status.UpdatedReplicas = 2, 1
		set.Status.Conditions = []metav1.Condition{{Type: "UpdateInProgress", Status: metav1.ConditionTrue, Reason: "GroupsUpdating", LastTransitionTime: metav1.NewTime(after(9001))}}
		set.Status.Groups = []leaderworkersetv1.GroupStatus{{Index: 1, Restarts: 4, LastRestartTime: ptr.To(metav1.NewTime(after(5190))), FirstCause: cause("vllm-1-1", 5185)}}
	})
	g.revision(1, oldKey, 1)
	g.revision(2, newKey, 9000)
	g.group(0, oldKey, 5, 300)
	g.group(1, oldKey, 5220, 0)
	g.group(2, newKey, 9060, 9900)
	return g
}

// paused is the same, after a user has paused the update.
func paused() *replicasOf {
	g := rolling()
	g.set.Spec.Paused = ptr.To(true)
	g.set.Status.LastAction = &leaderworkersetv1.LastAction{Action: leaderworkersetv1.ActionPause, User: "bob", Reason: "errors of the new version", Time: at(10000)}
	return g
}

// failing has a replica that waits for its backoff, one that is left as it is, and one that is being recreated on request.
func failing() *replicasOf {
	g := newReplicasOf(3, func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](5)
		set.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue, Reason: "MaxGroupRestartsExceeded", Message: "Group 1 (5 restarts) has failed again"}}
		set.Status.Groups = []leaderworkersetv1.GroupStatus{
			{Index: 0, Restarts: 3, RestartsInRow: 3, RestartedLeader: "vllm-0-pod", RestartAt: ptr.To(metav1.NewTime(after(90060))), LastRestartTime: ptr.To(metav1.NewTime(after(80000))), FirstCause: cause("vllm-0", 89000)},
			{Index: 1, Restarts: 5, Failed: true, RestartedLeader: "vllm-1-pod", LastRestartTime: ptr.To(metav1.NewTime(after(60000))), FirstCause: cause("vllm-1-1", 70000)},
			{Index: 2, LastRestartTime: ptr.To(metav1.NewTime(after(89990)))},
		}
		set.Status.LastAction = &leaderworkersetv1.LastAction{Action: leaderworkersetv1.ActionRestart, Group: ptr.To[int32](2), User: "alice", Time: at(89990)}
	})
	g.revision(1, newKey, 1)
	g.group(0, newKey, 80030, 0)
	g.group(1, newKey, 60030, 0)
	g.group(2, newKey, 30, 90)
	for i := range g.pods[4:] {
		g.pods[4+i].DeletionTimestamp, g.pods[4+i].DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(after(90020))), ptr.To[int64](30)
	}
	return g
}

// crowd is a set of 100 replicas, of which three are not well.
func crowd() *replicasOf {
	g := newReplicasOf(100, func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Status.ReadyReplicas, set.Status.UpdatedReplicas = 97, 30
		set.Status.Conditions = []metav1.Condition{{Type: "UpdateInProgress", Status: metav1.ConditionTrue, Reason: "GroupsUpdating", LastTransitionTime: metav1.NewTime(after(9001))}}
	})
	g.revision(1, oldKey, 1)
	g.revision(2, newKey, 9000)
	for i := range 98 {
		key, created, ready := oldKey, float64(i), float64(300+i)
		if i >= 70 {
			key, created, ready = newKey, float64(9500-10*i), float64(9900-10*i)
		}
		if i == 69 {
			ready = 0
		}
		g.group(i, key, created, ready)
	}
	return g
}
