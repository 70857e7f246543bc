// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the StatefulSet controller, for the management policy Parallel.

// ownRevision is the label with the revision of the StatefulSet that a pod has.
const ownRevision = "controller-revision-hash"

func ordinals(sts *appsv1.StatefulSet) (from, to int) {
	if sts.Spec.Ordinals != nil {
		from = int(sts.Spec.Ordinals.Start)
	}
	return from, from + int(ptr.Deref(sts.Spec.Replicas, 1))
}

func ordinalOf(pod *corev1.Pod) int {
	_, n := helper.ParentAndOrdinal(pod.Name)
	return int(n)
}

// revisionNamed returns the name of the revision of the template of a StatefulSet.
func (e *env) revisionNamed(sts *appsv1.StatefulSet) string {
	h := fnv.New32a()
	t := &sts.Spec.Template
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		_, _ = h.Write([]byte(key + t.Labels[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(t.Annotations)) {
		_, _ = h.Write([]byte(key + t.Annotations[key]))
	}
	_, _ = h.Write([]byte(t.Spec.Containers[0].Image))
	revision := strconv.FormatUint(uint64(h.Sum32()), 16)
	if e.templates[sts.UID] == nil {
		e.templates[sts.UID] = map[string]*corev1.PodTemplateSpec{}
	}
	e.templates[sts.UID][revision] = t
	return revision
}

// runSome lets the StatefulSet controller look at one StatefulSet.
func (e *env) runSome() {
	if all := e.statefulSets.Objects; len(all) > 0 {
		e.run(simulation.OneOf(e.Dice, all...))
	}
}

// run is one pass of the StatefulSet controller. It reports whether it changed anything.
func (e *env) run(sts *appsv1.StatefulSet) bool {
	if _, other := sts.Labels[ofOthers]; other || sts.DeletionTimestamp != nil {
		return false
	}
	status := *sts.Status.DeepCopy()
	status.ObservedGeneration, status.UpdateRevision = sts.Generation, e.revisionNamed(sts)
	if status.CurrentRevision == "" {
		status.CurrentRevision = status.UpdateRevision
	}
	busy := e.replenish(sts, &status)
	busy = e.rollOn(sts, &status) || busy
	e.count(sts, &status)
	if equality.Semantic.DeepEqual(status, sts.Status) {
		return busy
	}
	next := sts.DeepCopy()
	next.Status = status
	e.statefulSets.Put(next)
	return true
}

// replenish creates missing pods, and deletes those that have ended or are too many.
func (e *env) replenish(sts *appsv1.StatefulSet, status *appsv1.StatefulSetStatus) (busy bool) {
	from, to := ordinals(sts)
	waits := e.refused(sts)
	for n := from; n < to; n++ {
		pod, found := e.pods.Get(fmt.Sprintf("%s-%d", sts.Name, n))
		switch {
		case !found && waits:
		case !found && e.outage:
			e.refuse(sts)
		case !found:
			e.createPod(sts, status, n)
			if busy = true; e.oneByOne {
				return busy
			}
		case pod.DeletionTimestamp == nil && metav1.IsControlledBy(pod, sts) && pod.Status.Phase == corev1.PodFailed:
			e.deletePod(pod, false)
			busy = true
		}
	}
	for _, pod := range e.podsOf(sts) {
		if n := ordinalOf(pod); pod.DeletionTimestamp == nil && (n < from || n >= to) {
			e.deletePod(pod, false)
			busy = true
		}
	}
	return busy
}

func partitionOf(sts *appsv1.StatefulSet) int {
	if u := sts.Spec.UpdateStrategy.RollingUpdate; u != nil {
		return int(ptr.Deref(u.Partition, 0))
	}
	return 0
}

func healthy(pod *corev1.Pod) bool { return isReady(pod) && pod.DeletionTimestamp == nil }

// rollOn deletes pods of another revision, as many as may be unavailable. Pods that are not healthy count, whatever their revision.
func (e *env) rollOn(sts *appsv1.StatefulSet, status *appsv1.StatefulSetStatus) (busy bool) {
	from, to := ordinals(sts)
	allowed := 1
	if u := sts.Spec.UpdateStrategy.RollingUpdate; u != nil && u.MaxUnavailable != nil {
		allowed = u.MaxUnavailable.IntValue()
	}
	own := map[int]*corev1.Pod{}
	for _, pod := range e.podsOf(sts) {
		own[ordinalOf(pod)] = pod
	}
	for n := from; n < to; n++ {
		if own[n] == nil || !healthy(own[n]) {
			allowed--
		}
	}
	for n := to - 1; n >= from+partitionOf(sts) && allowed > 0; n-- {
		pod := own[n]
		if pod == nil || pod.DeletionTimestamp != nil || pod.Labels[ownRevision] == status.UpdateRevision {
			continue
		}
		e.Note("  statefulset %s replaces pod %s", sts.Name, pod.Name)
		e.Seen["pods replaced by a rolling update"]++
		e.deletePod(pod, false)
		allowed--
		busy = true
	}
	return busy
}

func (e *env) count(sts *appsv1.StatefulSet, status *appsv1.StatefulSetStatus) {
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas, status.CurrentReplicas, status.UpdatedReplicas = 0, 0, 0, 0, 0
	for _, pod := range e.podsOf(sts) {
		status.Replicas++
		if isReady(pod) {
			status.ReadyReplicas++
			status.AvailableReplicas++
		}
		if pod.DeletionTimestamp == nil && pod.Labels[ownRevision] == status.UpdateRevision {
			status.UpdatedReplicas++
		}
		if pod.DeletionTimestamp == nil && pod.Labels[ownRevision] == status.CurrentRevision {
			status.CurrentReplicas++
		}
	}
	if n := status.Replicas; status.UpdatedReplicas == n && status.ReadyReplicas == n && n == ptr.Deref(sts.Spec.Replicas, 1) {
		status.CurrentRevision, status.CurrentReplicas = status.UpdateRevision, n
	}
}

// createPod creates a pod from the template of the revision that its ordinal has, and completes it as the webhook of the server does.
func (e *env) createPod(sts *appsv1.StatefulSet, status *appsv1.StatefulSetStatus, n int) {
	from, _ := ordinals(sts)
	revision := status.UpdateRevision
	if n < from+partitionOf(sts) {
		revision = status.CurrentRevision
	}
	t := e.templates[sts.UID][revision].DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", sts.Name, n), Namespace: namespace, UID: e.NewUID("pod"), CreationTimestamp: e.stored(),
			Labels: t.Labels, Annotations: t.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(sts, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))},
		},
		Spec:   t.Spec,
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	pod.Labels[ownRevision] = revision
	if pod.Labels[leaderworkersetv1.WorkerIndexLabelKey] == "0" {
		pod.Labels[leaderworkersetv1.GroupIndexLabelKey] = strconv.Itoa(n)
	} else {
		pod.Labels[leaderworkersetv1.WorkerIndexLabelKey] = strconv.Itoa(n)
	}
	e.Note("  statefulset %s creates pod %s (%s) at %s", sts.Name, pod.Name, pod.UID, pod.Labels[leaderworkersetv1.RevisionKey])
	e.Seen["pods created"]++
	e.pods.Put(pod)
	e.rules.podCreated(pod)
}
