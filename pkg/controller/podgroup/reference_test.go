// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file says what holds for groups by docs/pod-groups.md. It shares no code with the controller.

// keep is how long the past is known.
const keep = time.Minute

// past is what the API servers have stored lately.
type past struct {
	pods   timeline[*corev1.Pod]
	jobs   timeline[*batchv1.Job]
	groups timeline[*batchv1alpha1.PodReadinessGroup]
}

func newPast(e *env) *past {
	p := &past{}
	p.pods.follow(e.World, &e.pods.Store)
	p.jobs.follow(e.World, &e.jobs.Store)
	p.groups.follow(e.World, &e.groups.Store)
	return p
}

// look takes note of what has changed.
func (p *past) look() {
	p.pods.look()
	p.jobs.look()
	p.groups.look()
}

// timeline is the past of one resource, change by change: caches may show each state that was ever stored.
type timeline[T simulation.Object] struct {
	world  *simulation.World
	live   simulation.Informer[T]
	states []state[T]
}

type state[T any] struct {
	objects []T
	end     time.Time
}

func (t *timeline[T]) follow(w *simulation.World, store *simulation.Store[T]) {
	t.world = w
	t.live = simulation.Informer[T]{From: store, Handle: func(T, bool) {}}
	t.live.List()
}

func (t *timeline[T]) look() {
	for t.live.Behind() > 0 {
		t.states = append(t.states, state[T]{slices.Clone(t.live.Objects), t.world.Now()})
		t.live.Advance()
	}
	t.states = slices.DeleteFunc(t.states, func(s state[T]) bool { return t.world.Since(s.end) > keep })
}

// since returns the states that were there at that time or later, the last first.
func (t *timeline[T]) since(when time.Time) [][]T {
	t.look()
	all := [][]T{t.live.Objects}
	for _, s := range slices.Backward(t.states) {
		if s.end.Before(when) {
			break
		}
		all = append(all, s.objects)
	}
	return all
}

// figures are how far a group is.
type figures struct {
	pods, running, labeled int
	size                   int
	// mayGrow means that pods count because they exist, and unclear that a failed pod may have been replaced or not.
	mayGrow, unclear bool
	// runs are the pods that run and lack the label.
	runs map[types.UID]bool
}

// enough returns whether the group is ready once its stabilization window is over.
func (f figures) enough() bool { return f.size > 0 && f.running >= f.size }

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// count returns the figures of the group of a prefix.
func count(prefix int, pods []*corev1.Pod, group *batchv1alpha1.PodReadinessGroup, jobs []*batchv1.Job) figures {
	f := figures{runs: map[types.UID]bool{}}
	var members []*corev1.Pod
	for _, pod := range pods {
		if prefixOf(pod) != prefix || pod.DeletionTimestamp != nil {
			continue
		}
		members = append(members, pod)
		if pod.Status.Phase == corev1.PodFailed {
			continue
		}
		f.pods++
		if labeled(pod) {
			f.labeled++
		}
		needsReady := group != nil && group.Spec.ReadyWhen == batchv1alpha1.ReadyWhenReady
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodRunning && (!needsReady || podReady(pod)) {
			f.running++
			if !labeled(pod) {
				f.runs[pod.UID] = true
			}
		}
	}
	if group != nil && group.Spec.MinMember != nil {
		f.size = int(*group.Spec.MinMember)
	} else if f.size = stated(prefix, members); f.size == 0 {
		f.countOwners(members, jobs)
	}
	return f
}

// stated returns the largest size that a pod states.
func stated(prefix int, pods []*corev1.Pod) (size int) {
	sizeKey := prefixes[prefix].SizeKey
	for _, pod := range pods {
		for _, text := range []string{pod.Labels[sizeKey], pod.Annotations[sizeKey]} {
			if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= 100_000 {
				size = max(size, n)
			}
		}
	}
	return size
}

// countOwners adds what the Jobs of the pods say, and the pods that no Job speaks for.
func (f *figures) countOwners(pods []*corev1.Pod, jobs []*batchv1.Job) {
	counted := map[types.UID]bool{}
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		var job *batchv1.Job
		if owner != nil {
			if i := slices.IndexFunc(jobs, func(j *batchv1.Job) bool { return j.UID == owner.UID }); i >= 0 {
				job = jobs[i]
			}
		}
		failed := pod.Status.Phase == corev1.PodFailed
		switch {
		case job != nil && !counted[job.UID]:
			counted[job.UID] = true
			f.size += int(ptr.Deref(job.Spec.Parallelism, 1))
		case job != nil:
		case failed && owner != nil:
			f.unclear = true
		case failed: // nothing replaces it
			f.size++
			f.mayGrow = true
		default:
			f.size++
			f.mayGrow = true
		}
	}
}
