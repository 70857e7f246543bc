// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// Observe returns the set and its children as the caches have them. It returns nil for a set that is gone, and nil with a time to wait
// while the caches do not show what the last sync did.
func (s *Syncer) Observe(ctx context.Context, key cache.ObjectName) (*plan.Observed, time.Duration, error) {
	// What was read before the question could be older than the answer.
	if !s.deps.Consistency.VersionsShown(key) {
		return nil, queue.LagRetry, nil
	}
	set, err := s.deps.Caches.Set(key)
	if err != nil {
		return nil, 0, err
	}
	if set == nil {
		s.forget(key)
		return nil, 0, nil
	}
	if unreadable.Is(set) { // nothing is known of what it wants; its children stay as they are
		return nil, 0, nil
	}
	applied := s.applied.Noted(key)
	obs := &plan.Observed{
		Set: set, Gang: s.deps.Gang, Applied: applied.hash, AppliedGeneration: applied.generation, ServedSince: servedSince(s.deps.ServedSince()),
		Before: s.readings.Noted(key), Judged: s.judged.Noted(key), GoneLeaders: s.gone.noted(key),
		CountsWaited: s.countsWaited(key), TakenSince: s.taken.Noted(key), Now: metav1.NewTime(s.deps.Clock.Now().Truncate(time.Second)),
	}
	if err := s.observePods(key, obs); err != nil {
		return nil, 0, err
	}
	if !s.deps.Consistency.DeletionsShown(key, asObjects(obs.Leaders)) {
		return nil, queue.LagRetry, nil
	}
	if shown, err := s.leadersShown(ctx, obs); err != nil || !shown {
		return nil, queue.LagRetry, err
	}
	if err := s.observeOthers(key, obs); err != nil {
		return nil, 0, err
	}
	s.observeDomains(obs)
	s.observeCauses(obs)
	obs.IgnoredQueue = s.ignoredQueue(ctx, obs) // after everything that can fail: it is reported once only
	return obs, 0, nil
}

// servedSince rounds a time up to whole seconds, as Now has them: else the sync that was due would see the same second
// as the one before, and be due again at once.
func servedSince(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

// observePods adds the StatefulSets and their pods.
func (s *Syncer) observePods(key cache.ObjectName, obs *plan.Observed) (err error) {
	if obs.Leader, obs.LeaderTaken, err = s.deps.Caches.Leader(obs.Set); err != nil {
		return err
	}
	if obs.Leader != nil {
		if obs.Leaders, err = s.deps.Caches.Pods(obs.Leader.UID); err != nil {
			return err
		}
	}
	if obs.Workers, err = s.deps.Caches.Workers(key); err != nil {
		return err
	}
	for i := range obs.Workers {
		if obs.Workers[i].Pods, err = s.deps.Caches.Pods(obs.Workers[i].UID); err != nil {
			return err
		}
	}
	s.observeRefusedPods(key, obs)
	return nil
}

// observeOthers adds the children that are no StatefulSets and no pods.
func (s *Syncer) observeOthers(key cache.ObjectName, obs *plan.Observed) error {
	services, err := s.deps.Caches.Services(key)
	if err != nil {
		return err
	}
	owners := sets.New(obs.Set.UID)
	for i := range obs.Leaders {
		owners.Insert(obs.Leaders[i].UID)
	}
	for _, service := range services {
		obs.Services = append(obs.Services, plan.Service{Ref: service.Ref, Owned: owners.Has(service.Controller)})
	}
	groups, err := s.deps.Caches.PodGroups(key)
	if err != nil {
		return err
	}
	for _, group := range groups {
		obs.PodGroups = append(obs.PodGroups, group.Ref)
	}
	revisions, err := s.deps.Caches.Revisions(key)
	obs.Revisions = slices.DeleteFunc(revisions, func(r *appsv1.ControllerRevision) bool {
		owner := metav1.GetControllerOfNoCopy(r)
		return owner != nil && owner.UID != obs.Set.UID || owner == nil && plan.OrphanOf(r) == nil
	})
	if err != nil {
		return err
	}
	obs.Orphans, err = s.deps.Caches.Orphans(key)
	return err
}

// observeDomains adds the domains of the nodes of leaders, if the set has exclusive placement.
func (s *Syncer) observeDomains(obs *plan.Observed) {
	key := exclusiveKey(obs.Set)
	if key == "" {
		return
	}
	obs.Domains = map[string]string{}
	for i := range obs.Leaders {
		if node := obs.Leaders[i].Node; node != "" {
			if domain, known := s.deps.Caches.Domain(node, key); known {
				obs.Domains[node] = domain
			}
		}
	}
}

// leaderPod is what the consistency store needs to know of a pod.
type leaderPod struct {
	metav1.Object
	pod *plan.Pod
}

// GetUID returns the UID.
func (l *leaderPod) GetUID() types.UID { return l.pod.UID }

// GetDeletionTimestamp returns any time if the pod is being deleted.
func (l *leaderPod) GetDeletionTimestamp() *metav1.Time {
	if l.pod.Deleting {
		return &metav1.Time{}
	}
	return nil
}

// asObjects returns what is needed to see whether deletions show.
func asObjects(pods []plan.Pod) []metav1.Object {
	all, out := make([]leaderPod, len(pods)), make([]metav1.Object, len(pods))
	for i := range pods {
		all[i].pod = &pods[i]
		out[i] = &all[i]
	}
	return out
}
