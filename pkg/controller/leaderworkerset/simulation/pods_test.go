// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the lives of pods, and the garbage collector.

func isReady(pod *corev1.Pod) bool {
	return len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Status == corev1.ConditionTrue
}

// broken pods never become ready.
func broken(pod *corev1.Pod) bool { return strings.HasPrefix(pod.Spec.Containers[0].Image, "bad") }

func (e *env) changePod(pod *corev1.Pod, change func(*corev1.Pod)) {
	next := pod.DeepCopy()
	change(next)
	e.pods.Put(next)
}

func (e *env) setReady(pod *corev1.Pod, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: e.stored()}}
}

// liveSome takes some pods a step further.
func (e *env) liveSome() {
	for _, pod := range slices.Clone(e.pods.Objects) {
		if !e.Dice.Percent(40) {
			continue
		}
		if pod.DeletionTimestamp == nil && e.Dice.Percent(e.faults.failing) {
			e.failPod(pod)
			continue
		}
		e.live(pod)
	}
}

// live takes a pod a step further: it starts, becomes ready, or is gone. It reports whether anything changed.
func (e *env) live(pod *corev1.Pod) bool {
	switch {
	case pod.DeletionTimestamp != nil && len(pod.Finalizers) == 0 && pod.UID != e.slow:
		e.removePod(pod)
	case pod.DeletionTimestamp != nil && isReady(pod):
		e.changePod(pod, func(p *corev1.Pod) { e.setReady(p, false) })
	case pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed:
		return false
	case pod.Status.Phase == corev1.PodPending:
		return e.start(pod)
	case !isReady(pod) && !broken(pod) && !e.never:
		e.changePod(pod, func(p *corev1.Pod) { e.setReady(p, true) })
	default:
		return false
	}
	return true
}

// failPod lets a container of a pod restart, or the pod fail.
func (e *env) failPod(pod *corev1.Pod) {
	if pod.Status.Phase != corev1.PodRunning {
		return
	}
	if e.Dice.Percent(70) {
		e.Note("a container of pod %s (%s) restarts", pod.Name, pod.UID)
		e.Seen["restarts of containers"]++
		e.rules.podFailed(pod)
		e.changePod(pod, func(p *corev1.Pod) {
			e.setReady(p, false)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 1}}
		})
		return
	}
	e.Note("pod %s (%s) fails", pod.Name, pod.UID)
	e.Seen["pods that failed"]++
	e.changePod(pod, func(p *corev1.Pod) {
		e.setReady(p, false)
		p.Status.Phase = corev1.PodFailed
	})
}

// deletePod is what the API server does when a pod is deleted, in the foreground or in the background.
func (e *env) deletePod(pod *corev1.Pod, foreground bool) {
	if pod.DeletionTimestamp != nil {
		return
	}
	if pod.Status.Phase == corev1.PodPending {
		e.Seen["pods deleted before they started"]++
	} else if pod.Labels[leaderworkersetv1.WorkerIndexLabelKey] != "0" {
		e.rules.podFailed(pod)
	}
	e.rules.leaves(pod)
	e.changePod(pod, func(p *corev1.Pod) {
		now := e.stored()
		p.DeletionTimestamp = &now
		if foreground {
			p.Finalizers = append(p.Finalizers, metav1.FinalizerDeleteDependents)
		}
	})
}

func (e *env) removePod(pod *corev1.Pod) {
	if pod.DeletionTimestamp == nil {
		e.rules.leaves(pod)
	}
	e.rules.removed(pod)
	if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodPending && pod.Labels[leaderworkersetv1.WorkerIndexLabelKey] != "0" {
		e.rules.podFailed(pod)
	}
	e.pods.Remove(pod.Name)
}

// deleteStatefulSet is what the API server does when a StatefulSet is deleted.
func (e *env) deleteStatefulSet(sts *appsv1.StatefulSet, foreground bool) {
	switch {
	case !foreground && len(sts.Finalizers) == 0:
		e.statefulSets.Remove(sts.Name)
	case sts.DeletionTimestamp == nil:
		next := sts.DeepCopy()
		now := e.stored()
		next.DeletionTimestamp, next.Finalizers = &now, append(next.Finalizers, metav1.FinalizerDeleteDependents)
		e.statefulSets.Put(next)
	}
}

// owners returns the UIDs of all objects that own others.
func (e *env) owners() map[types.UID]bool {
	all := map[types.UID]bool{}
	if set := e.set(); set != nil {
		all[set.UID] = true
	}
	for _, sts := range e.statefulSets.Objects {
		all[sts.UID] = true
	}
	for _, pod := range e.pods.Objects {
		all[pod.UID] = true
	}
	return all
}

func orphan(owners map[types.UID]bool, obj metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(obj)
	return owner != nil && !owners[owner.UID]
}

// collectGarbage deletes what has no owner any more, and goes on with deletions in the foreground. It reports whether
// there was anything to do.
func (e *env) collectGarbage() (busy bool) {
	owners := e.owners()
	for _, sts := range slices.Clone(e.statefulSets.Objects) {
		if sts.DeletionTimestamp == nil && orphan(owners, sts) {
			e.deleteStatefulSet(sts, false)
			busy = true
		}
	}
	for _, pod := range slices.Clone(e.pods.Objects) {
		if pod.DeletionTimestamp == nil && orphan(owners, pod) {
			e.deletePod(pod, false)
			busy = true
		}
	}
	for _, service := range slices.Clone(e.services.Objects) {
		if orphan(owners, service) {
			e.services.Remove(service.Name)
			busy = true
		}
	}
	for _, group := range slices.Clone(e.podGroups.Objects) {
		if orphan(owners, group) {
			e.podGroups.Remove(group.GetName())
			busy = true
		}
	}
	for _, revision := range slices.Clone(e.revisions.Objects) {
		if orphan(owners, revision) {
			e.revisions.Remove(revision.Name)
			busy = true
		}
	}
	return e.deleteDependents() || busy
}

// deleteDependents goes on with deletions in the foreground: dependents first, then their owners.
func (e *env) deleteDependents() (busy bool) {
	for _, pod := range slices.Clone(e.pods.Objects) {
		if !slices.Contains(pod.Finalizers, metav1.FinalizerDeleteDependents) {
			continue
		}
		blocked, changed := e.dependentsOf(pod)
		if busy = busy || changed; !blocked {
			busy = true
			e.changePod(pod, func(p *corev1.Pod) { p.Finalizers = nil })
		}
	}
	for _, sts := range slices.Clone(e.statefulSets.Objects) {
		if !slices.Contains(sts.Finalizers, metav1.FinalizerDeleteDependents) {
			continue
		}
		own := e.podsOf(sts)
		for _, pod := range own {
			busy = busy || pod.DeletionTimestamp == nil
			e.deletePod(pod, false)
		}
		if len(own) == 0 {
			busy = true
			e.statefulSets.Remove(sts.Name)
		}
	}
	return busy
}

// dependentsOf deletes what a pod owns. It returns whether anything is left.
func (e *env) dependentsOf(pod *corev1.Pod) (left, changed bool) {
	for _, service := range slices.Clone(e.services.Objects) {
		if metav1.IsControlledBy(service, pod) {
			e.services.Remove(service.Name)
			changed = true
		}
	}
	for _, group := range slices.Clone(e.podGroups.Objects) {
		if metav1.IsControlledBy(group, pod) {
			e.podGroups.Remove(group.GetName())
			changed = true
		}
	}
	if sts := e.workers(pod); sts != nil {
		left, changed = true, changed || sts.DeletionTimestamp == nil
		e.deleteStatefulSet(sts, true)
	}
	return left, changed
}

// somePod returns any pod; nil if there is none.
func (e *env) somePod() *corev1.Pod {
	if len(e.pods.Objects) == 0 {
		return nil
	}
	return simulation.OneOf(e.Dice, e.pods.Objects...)
}
