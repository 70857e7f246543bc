// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// recreates returns whether groups of the set are recreated when a pod of them fails, and whether only those that have started.
func recreates(set *leaderworkersetv1.LeaderWorkerSet) (recreate, afterStart bool) {
	_, annotated := set.Annotations[leaderworkersetv1.RecreateGroupAfterStartAnnotationKey]
	switch set.Spec.LeaderWorkerTemplate.RestartPolicy {
	case leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart, "":
		return true, annotated
	case leaderworkersetv1.RestartPolicyRecreateGroupAfterStart:
		return true, true
	}
	return false, false
}

// trigger is why a group has to be recreated. The zero trigger is none.
type trigger struct {
	// pods have failed: the leader first, then workers.
	pods []*Pod
	// lost workers were deleted and replaced before anybody looked.
	lost int
}

func (t trigger) holds() bool { return len(t.pods) > 0 || t.lost > 0 }

// triggerOf returns why the group has to be recreated. Workers of former incarnations of the group are no reason: they
// belong to another leader pod, or are of another revision. Neither is anything once the leader is being deleted.
func (g *group) triggerOf(o Observed, afterStart bool) (t trigger) {
	if g.leader.Deleting {
		return trigger{}
	}
	for pod := range g.pods() {
		if failed(pod) && !g.replaces(pod) {
			t.pods = append(t.pods, pod)
		}
	}
	if w := g.workers; w != nil && w.Revision == g.leader.Revision {
		t.lost = max(w.Lost, unseen(o, g))
	}
	if afterStart {
		t = g.started(t)
	}
	return t
}

// replaces returns whether a pod that is being deleted is a worker that has not started, or one of a group that was
// never complete since its leader was created. Such a group has not failed: its StatefulSet replaces the pod, as what
// is left of the group before may make it do.
func (g *group) replaces(pod *Pod) bool {
	return pod != g.leader && pod.Deleting && !pod.Restarted && (pod.Phase == corev1.PodPending || g.neverComplete())
}

// pods yields the leader and its workers.
func (g *group) pods() func(yield func(*Pod) bool) {
	return func(yield func(*Pod) bool) {
		if !yield(g.leader) || g.workers == nil {
			return
		}
		for i := range g.workers.Pods {
			pod := &g.workers.Pods[i]
			if pod.Controller == g.workers.UID && pod.Revision == g.leader.Revision && !yield(pod) {
				return
			}
		}
	}
}

// failed returns whether a pod is a reason to recreate its group: it is being deleted, or a container of it has restarted.
func failed(pod *Pod) bool {
	return pod.Deleting || pod.Restarted && (pod.Phase == corev1.PodRunning || pod.Phase == corev1.PodPending)
}

// started returns what of a trigger counts for groups that are recreated only after they have started: all of it if all
// pods exist and none is pending. A group that has lost workers had started before if all of its other pods have.
func (g *group) started(t trigger) trigger {
	pods, pending := 0, 0
	for pod := range g.pods() {
		pods++
		pending += int(one(pod.Phase == corev1.PodPending))
	}
	switch size := int(g.size); {
	case pods == size && pending == 0:
		return t
	case g.leader.Phase != corev1.PodPending && pods-pending >= size-t.lost:
		return trigger{lost: t.lost}
	}
	return trigger{}
}

// clockSkew is how far the clock of this controller and that of the API server, which dates pods, may differ.
const clockSkew = 5 * time.Minute

// unseen returns how many workers of a group are gone or were replaced without a process of this controller that saw
// it. All groups were complete when the set became available, and as long as it is, nothing was seen since. So a worker
// that is younger is not the one that was there then. Of sets that were not available, or have changed since, nothing
// is known.
func unseen(o Observed, g *group) (lost int) {
	since := availableSince(o)
	if since.IsZero() || o.Now.Sub(since) < clockSkew || g.index >= helper.Replicas(o.Set) {
		return 0
	}
	if w := g.workers; w == nil || w.CreatedAt.IsZero() || w.CreatedAt.After(since) || g.leader.Created.After(since) {
		return 0
	}
	lost = int(g.size) - 1
	for pod := range g.pods() {
		lost -= int(one(pod != g.leader && !pod.Created.After(since.Add(clockSkew))))
	}
	return max(0, lost)
}

// availableSince returns since when the set is available at its present spec, as stored; zero if it is not.
func availableSince(o Observed) time.Time {
	c := meta.FindStatusCondition(o.Set.Status.Conditions, leaderworkersetv1.ConditionAvailable)
	if c == nil || c.Status != metav1.ConditionTrue || o.Set.Status.ObservedGeneration != o.Set.Generation {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
