// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// This file holds the changes that a group waits for. Their set is looked at sooner than for others.

// soonPerGroup is how long each group of a set delays the next look at it for a change that a group waits for. A look
// at all groups takes a small part of that for each of them, so that a burst of such changes costs a small part of a
// processor, whatever the size of the set.
const soonPerGroup = 200 * time.Microsecond

// soonAfter returns how soon after the last look at a set another one follows for a change that a group waits for.
func soonAfter(set *leaderworkersetv1.LeaderWorkerSet) time.Duration {
	return time.Duration(helper.Replicas(set)) * soonPerGroup
}

// enqueueSoon looks at a set, if it is known and applies says so, sooner than for changes that no group waits for.
func (c *Controller) enqueueSoon(key cache.ObjectName, applies func(set *leaderworkersetv1.LeaderWorkerSet) bool) {
	if set, err := c.caches.Set(key); err == nil && set != nil && applies(set) {
		c.queue.AddWithin(key, soonAfter(set))
	}
}

// enqueueLost looks at the set of a worker soon that is about to be missed by a group which stays, or is missed already: the group may have
// to be recreated.
func (c *Controller) enqueueLost(worker *watchedPod) {
	c.enqueueSoon(worker.key(), func(*leaderworkersetv1.LeaderWorkerSet) bool { return true })
}

// enqueueAwaited looks at the set of a pod soon if its group waits for the change. was is nil for a pod that is new.
func (c *Controller) enqueueAwaited(was, is *watchedPod) {
	c.enqueueSoon(is.key(), func(set *leaderworkersetv1.LeaderWorkerSet) bool { return awaited(set, was, is) })
}

// awaited returns whether something has to be done about the group of a pod after a change: to recreate it because a
// container has restarted, or to create its workers because its leader is there, is ready, or has a node, whichever
// they have waited for; or whether the next groups of an update may have waited for its leader. was is nil for a pod that is new.
func awaited(set *leaderworkersetv1.LeaderWorkerSet, was, is *watchedPod) bool {
	before := podFacts{}
	if was != nil {
		before = was.podFacts
	}
	switch {
	case is.deleting:
		return false
	case is.restarted && !before.restarted:
		return true
	case is.index != 0:
		return false
	}
	becomesReady := is.ready && !before.ready
	return was == nil ||
		becomesReady && (set.Spec.StartupPolicy == leaderworkersetv1.StartupPolicyLeaderReady || updates(set)) ||
		is.node != before.node && exclusiveKey(set) != ""
}

// updates returns whether an update of the set is in progress, whose next groups wait until those before them are ready.
func updates(set *leaderworkersetv1.LeaderWorkerSet) bool {
	return meta.IsStatusConditionTrue(set.Status.Conditions, leaderworkersetv1.ConditionUpdateInProgress)
}

// enqueueReady looks at the set of workers soon if the next groups wait for the change.
func (c *Controller) enqueueReady(before, after any) {
	was, wasWorkers := before.(*watchedWorkers)
	is, areWorkers := after.(*watchedWorkers)
	if wasWorkers && areWorkers && is.workers.Ready {
		c.enqueueSoon(is.key(), func(set *leaderworkersetv1.LeaderWorkerSet) bool { return workersAwaited(set, was, is) })
	}
}

// workersAwaited returns whether the next groups of an update may wait for a change of the workers of a group.
func workersAwaited(set *leaderworkersetv1.LeaderWorkerSet, was, is *watchedWorkers) bool {
	return is.workers.Ready && !was.workers.Ready && !is.workers.Deleting && updates(set)
}
