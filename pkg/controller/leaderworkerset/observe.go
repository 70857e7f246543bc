// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// Children returns the set, and its StatefulSets and pods as the caches have them.
func (k loopKind) Children(_ context.Context, key cache.ObjectName,
	set *leaderworkersetv1.LeaderWorkerSet) (*plan.Observed, []consistency.Child, error) {
	applied := k.applied.Noted(key)
	obs := &plan.Observed{
		Set: set, Gang: k.deps.Gang, Applied: applied.hash, AppliedGeneration: applied.generation, ServedSince: servedSince(k.deps.ServedSince()),
		Before: k.readings.Noted(key), Evaluated: k.evaluated.Noted(key), GoneLeaders: k.gone.noted(key),
		CountsWaited: k.countsWaited(key), TakenSince: k.taken.Noted(key),
		TroubledSince: k.troubled.Noted(key), Now: metav1.NewTime(k.deps.Clock.Now().Truncate(time.Second)),
	}
	err := k.observePods(key, obs)
	shown := make([]consistency.Child, 0, len(obs.Leaders))
	for i := range obs.Leaders {
		shown = append(shown, consistency.Child{UID: obs.Leaders[i].UID, Deleting: obs.Leaders[i].Deleting})
	}
	return obs, shown, err
}

// Complete adds what else a decision is made on.
func (k loopKind) Complete(ctx context.Context, key cache.ObjectName, obs *plan.Observed) (lags bool, err error) {
	if shown, err := k.leadersShown(ctx, obs); err != nil || !shown {
		return true, err
	}
	if err := k.observeOthers(key, obs); err != nil {
		return false, err
	}
	k.observeDomains(obs)
	return false, nil
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
		obs.LeaderKey = hostplan.Obtained(s.deps.Caches.LeaderKey(obs.Leader))
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
	pods := obs.Unschedulable()
	obs.UnschedulableSince = children.Since(s.unschedulable, key, pods > 0, obs.Now.Time)
	return nil
}

// observeOthers adds the children that are no StatefulSets and no pods.
func (s *Syncer) observeOthers(key cache.ObjectName, obs *plan.Observed) error {
	var err error
	if obs.Services, err = s.deps.Caches.Services(key); err != nil {
		return err
	}
	if obs.PodGroups, err = s.deps.Caches.PodGroups(key); err != nil {
		return err
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
