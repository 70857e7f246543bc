// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// This file holds rules about the pods of groups.

// podCreated checks that a worker is of the revision of its leader.
func (r *rules) podCreated(pod *corev1.Pod) {
	if r.gang != "" && pod.Annotations[leaderworkersetv1.GangAnnotationKey] == "" {
		r.Fail(ruleGang, "pod %s has no annotation", pod.Name)
	}
	for _, sts := range r.statefulSets.Objects {
		owner := metav1.GetControllerOfNoCopy(sts)
		if !metav1.IsControlledBy(pod, sts) || owner == nil || owner.Kind != "Pod" {
			continue
		}
		leader, found := r.pods.Get(owner.Name)
		if found && leader.UID == owner.UID && leader.Labels[leaderworkersetv1.RevisionKey] != pod.Labels[leaderworkersetv1.RevisionKey] {
			r.Fail(ruleMixed, "pod %s is of revision %s, and its leader of %s", pod.Name, pod.Labels[leaderworkersetv1.RevisionKey], leader.Labels[leaderworkersetv1.RevisionKey])
		}
	}
}

// edited forgets what has to happen by a policy that is no more.
func (r *rules) edited(before, after *leaderworkersetv1.LeaderWorkerSet) {
	if before.Spec.LeaderWorkerTemplate.RestartPolicy != after.Spec.LeaderWorkerTemplate.RestartPolicy {
		r.lost = map[types.UID]loss{}
	}
	if before.Generation != after.Generation {
		r.unseen = map[types.UID]loss{} // the status proves nothing any more
	}
}

// placed checks that new workers go where their leader is.
func (r *rules) placed(sts *appsv1.StatefulSet, leader *corev1.Pod) {
	if r.template.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey] == "" {
		return
	}
	r.Seen["groups placed in a domain"]++
	if got := sts.Spec.Template.Spec.NodeSelector[domainKey]; leader.Spec.NodeName == "" || got != domainOf(leader.Spec.NodeName) {
		r.Fail(rulePlaced, "statefulset %s is restricted to %q, and its leader is on %q", sts.Name, got, leader.Spec.NodeName)
	}
}

// removed notes that a worker is gone whose group was complete, and stays.
func (r *rules) removed(pod *corev1.Pod) {
	for _, sts := range r.statefulSets.Objects {
		if !metav1.IsControlledBy(pod, sts) || sts.DeletionTimestamp != nil || len(r.podsOf(sts)) < sizeOf(pod)-1 {
			continue
		}
		leader, found := r.pods.Get(sts.Name)
		if found && metav1.IsControlledBy(sts, leader) && leader.DeletionTimestamp == nil {
			r.losses[pod.UID] = loss{pod: pod.Name, workers: sts.UID, leader: leader.UID, at: r.Now()}
		}
	}
}

// lossShown notes that the process has seen it.
func (r *rules) lossShown(pod *corev1.Pod) {
	if loss, found := r.losses[pod.UID]; found {
		r.Seen["pods that were lost"]++
		r.lost[loss.leader] = loss
	}
}

// provedAfter is for how long a set has to be available until the status proves that a worker is another one than before.
const provedAfter = 5 * time.Minute

// findUnseen finds the workers that went while no controller ran, of groups that were complete when the set became available.
func (r *rules) findUnseen() {
	r.unseen = map[types.UID]loss{}
	set := r.set()
	if set == nil || r.Underway() > 0 || set.Status.ObservedGeneration != set.Generation {
		return
	}
	available := meta.FindStatusCondition(set.Status.Conditions, leaderworkersetv1.ConditionAvailable)
	if available == nil || available.Status != metav1.ConditionTrue {
		return
	}
	since := available.LastTransitionTime
	for _, loss := range r.losses {
		leader := r.podOf(loss.leader)
		if leader == nil || leader.DeletionTimestamp != nil || ordinalOf(leader) >= int(helper.Replicas(set)) || leader.CreationTimestamp.After(since.Time) {
			continue
		}
		workers := r.workers(leader)
		proved := workers != nil && workers.UID == loss.workers && !workers.CreationTimestamp.After(since.Time)
		if proved && loss.at.Truncate(time.Second).Sub(since.Time) > provedAfter {
			r.Seen["workers lost without a controller"]++
			r.unseen[leader.UID] = loss
		}
	}
}

func (r *rules) podOf(uid types.UID) *corev1.Pod {
	for _, pod := range r.pods.Objects {
		if pod.UID == uid {
			return pod
		}
	}
	return nil
}
