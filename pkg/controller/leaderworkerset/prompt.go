// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"time"

	"k8s.io/client-go/tools/cache"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// promptPerGroup is how long each group of a set delays the next look at it for a change that a group waits for. A look
// at all groups takes a small part of that for each of them, so that a burst of such changes costs a small part of a
// processor, whatever the size of the set.
const promptPerGroup = 200 * time.Microsecond

// promptAfter returns how soon after the last look at a set another one follows for a change that a group waits for.
func promptAfter(set *leaderworkersetv1.LeaderWorkerSet) time.Duration {
	return time.Duration(helper.Replicas(set)) * promptPerGroup
}

// enqueuePromptly looks at a set, if it is known and applies says so, sooner than for changes that no group waits for.
func (c *Controller) enqueuePromptly(key cache.ObjectName, applies func(set *leaderworkersetv1.LeaderWorkerSet) bool) {
	if set, err := c.caches.Set(key); err == nil && set != nil && applies(set) {
		c.queue.AddWithin(key, promptAfter(set))
	}
}

// enqueueAwaited looks at the set of a pod promptly if its group waits for the change. was is nil for a pod that is new.
func (c *Controller) enqueueAwaited(was, is *watchedPod) {
	c.enqueuePromptly(is.key(), func(set *leaderworkersetv1.LeaderWorkerSet) bool { return awaited(set, was, is) })
}

// awaited returns whether something has to be done about the group of a pod after a change: to recreate it because a
// container has restarted, or to create its workers because its leader is there, is ready, or has a node, whichever
// they have waited for. was is nil for a pod that is new.
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
	return was == nil ||
		is.ready && !before.ready && set.Spec.StartupPolicy == leaderworkersetv1.StartupPolicyLeaderReady ||
		is.node != before.node && exclusiveKey(set) != ""
}
