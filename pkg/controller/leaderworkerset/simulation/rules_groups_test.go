// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds rules about the pods of groups.

// podCreated checks that a worker is of the revision of its leader.
func (r *rules) podCreated(pod *corev1.Pod) {
	if r.never {
		r.checkKnown(pod)
	}
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

// podFailed notes that a container of a pod has restarted, or that a worker that had started is being deleted or is gone.
func (r *rules) podFailed(pod *corev1.Pod) {
	if pod.Labels[leaderworkersetv1.WorkerIndexLabelKey] == "0" {
		r.failed[pod.UID] = true
		return
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		r.failed[r.ledBy[owner.UID]] = true
	}
}

// touched checks that an object which the controller changes or deletes is not one of others.
func (r *rules) touched(object metav1.Object) {
	if _, other := object.GetLabels()[ofOthers]; other {
		r.Fail(simulation.RuleOthers, "%s (%s)", object.GetName(), object.GetUID())
	}
}

// adopted checks that an object gets no second controller, and none that is gone.
func (r *rules) adopted(before, after metav1.Object) {
	owner := metav1.GetControllerOfNoCopy(after)
	if owner == nil || metav1.GetControllerOfNoCopy(before) != nil {
		r.Fail(ruleAdopted, "%s (%s) has another controller", before.GetName(), before.GetUID())
	}
	r.Seen["adoptions"]++
	if sts, ok := after.(*appsv1.StatefulSet); ok {
		r.ledBy[sts.UID] = owner.UID
		if leader := r.podOf(owner.UID); leader != nil && sts.CreationTimestamp.Before(&leader.CreationTimestamp) {
			r.Fail(ruleForeign, "statefulset %s is older than its new leader", sts.Name)
		}
		if leader := r.podOf(owner.UID); leader != nil && leader.Labels[leaderworkersetv1.RevisionKey] != sts.Labels[leaderworkersetv1.RevisionKey] {
			r.Fail(ruleForeign, "statefulset %s gets a leader of another revision", sts.Name)
		}
	}
	if r.calm() && !r.owners()[owner.UID] {
		r.Fail(ruleAdopted, "the controller %s of %s (%s) is gone", owner.UID, before.GetName(), before.GetUID())
	}
}

// strike notes that a user or a controller deletes a pod, or is about to. If the pod is a leader whose StatefulSet has
// nothing to do, the status has to show that. In all other cases, something else that happens to the set may be the
// reason.
func (r *rules) strike(pod *corev1.Pod) {
	sts := r.leaders()
	if sts == nil || sts.DeletionTimestamp != nil || !metav1.IsControlledBy(pod, sts) || pod.DeletionTimestamp != nil || r.recorded[pod.UID] || r.requested[pod.UID] {
		return
	}
	current := sts.Status.ObservedGeneration == sts.Generation && r.revisionNamed(sts) == pod.Labels[ownRevision] && r.set().Status.Restart == nil &&
		pod.Labels[leaderworkersetv1.RevisionKey] == sts.Labels[leaderworkersetv1.RevisionKey]
	if current && ordinalOf(pod) < int(ptr.Deref(sts.Spec.Replicas, 1)) {
		r.struck[pod.UID] = false
	}
}

// leaderShownGone notes that the process has seen that a leader pod is gone.
func (r *rules) leaderShownGone(pod *corev1.Pod) {
	if _, struck := r.struck[pod.UID]; struck {
		r.Seen["leaders that others deleted"]++
		r.struck[pod.UID] = true
	}
}

// checkStruck checks that each recreation of a group by others is recorded.
func (r *rules) checkStruck() {
	for uid, shown := range r.struck {
		if shown && !r.inStatus[uid] {
			r.Fail(ruleRecreated, "leader pod %s was deleted, and no status has named it", uid)
		}
	}
}

// edited forgets what has to happen by a policy that is no more.
func (r *rules) edited(before, after *leaderworkersetv1.LeaderWorkerSet) {
	r.struck = map[types.UID]bool{}
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

// leaves notes that a pod is about to be deleted.
func (r *rules) leaves(pod *corev1.Pod) {
	for _, sts := range r.statefulSets.Objects {
		if leader, found := r.pods.Get(sts.Name); found && metav1.IsControlledBy(pod, sts) && metav1.IsControlledBy(sts, leader) {
			pending := func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodPending }
			r.early[pod.UID] = pending(leader) || slices.ContainsFunc(r.podsOf(sts), pending)
		}
	}
}

// removed notes that a worker is gone whose group was complete, and stays.
func (r *rules) removed(pod *corev1.Pod) {
	set := r.set()
	if set != nil && set.Spec.LeaderWorkerTemplate.RestartPolicy == leaderworkersetv1.RestartPolicyRecreateGroupAfterStart && r.early[pod.UID] {
		return
	}
	for _, sts := range r.statefulSets.Objects {
		if !metav1.IsControlledBy(pod, sts) || sts.DeletionTimestamp != nil || len(r.podsOf(sts)) < sizeOf(pod)-1 || pod.Status.Phase == corev1.PodPending {
			continue
		}
		leader, found := r.pods.Get(sts.Name)
		if found && metav1.IsControlledBy(sts, leader) && leader.DeletionTimestamp == nil {
			r.losses[pod.UID] = loss{pod: pod.Name, workers: sts.UID, leader: leader.UID, at: r.byCluster(r.Now())}
		}
	}
}

// lossShown notes that the process has seen it.
func (r *rules) lossShown(pod *corev1.Pod) {
	if loss, found := r.losses[pod.UID]; found && !r.leaving.Has(pod.UID) {
		r.Seen["pods that were lost"]++
		r.lost[loss.leader] = loss
	}
}

// misdated returns whether a leader pod was created after its set became available, and looks older because the clock of kube-apiserver,
// which dates pods, is behind the clock of the controller, which dates conditions. Workers that its group has never had look lost.
func (r *rules) misdated(set *leaderworkersetv1.LeaderWorkerSet, uid types.UID) bool {
	available, pod := meta.FindStatusCondition(set.Status.Conditions, leaderworkersetv1.ConditionAvailable), r.podOf(uid)
	if available == nil || pod == nil {
		return false
	}
	since := available.LastTransitionTime
	return !pod.CreationTimestamp.After(since.Time) && pod.CreationTimestamp.Add(-r.skew).After(since.Time)
}

// findLeaving returns what leaving holds for a process that starts now.
func (r *rules) findLeaving() sets.Set[types.UID] {
	leaving := sets.New[types.UID]()
	orphan := func(sts *appsv1.StatefulSet) bool { return metav1.GetControllerOfNoCopy(sts) == nil }
	if r.hidden == nil && !slices.ContainsFunc(r.statefulSets.Objects, orphan) {
		return leaving
	}
	for _, pod := range r.pods.Objects {
		if pod.DeletionTimestamp != nil {
			leaving.Insert(pod.UID)
		}
	}
	return leaving
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
