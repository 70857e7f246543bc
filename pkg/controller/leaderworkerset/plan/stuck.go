// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// replaceStuck deletes leader pods that the update has released and that the StatefulSet controller does not replace:
// it waits while as many pods as its maxUnavailable are not ready, even if those are the pods that wait to be replaced.
// Pods that are not ready lose nothing by it. Ready ones follow only as far as groups that have been broken for long
// keep the StatefulSet controller from replacing them, or as a cluster without the feature MaxUnavailableStatefulSet
// would replace one after the other.
func replaceStuck(s *snapshot) (p Plan) {
	if !rolls(s) {
		return p
	}
	p.actAfter(nextBroken(s))
	spare, stuck := spareLeaders(s)
	if !stuck {
		return p
	}
	for i := range slices.Backward(s.groups) {
		switch g := &s.groups[i]; {
		case !waitsForReplacement(s, g) || g.counted || len(p.DeleteLeaders) == maxWrites:
		case !leaderAvailable(g.leader):
			p.DeleteLeaders = append(p.DeleteLeaders, Deletion{Ref: g.leader.Ref})
		case spare > 0:
			spare--
			p.DeleteLeaders = append(p.DeleteLeaders, Deletion{Ref: g.leader.Ref})
		}
	}
	return p
}

// waitsForReplacement returns whether the update has released a leader pod of a former revision, which is not deleted yet. A user may have
// raised the partition since.
func waitsForReplacement(s *snapshot, g *group) bool {
	lowest := max(partitionOf(s.Leader), helper.Partition(s.Set))
	return g.index < leaderCount(s.Leader) && g.index >= lowest && g.leader.Revision != s.rev.key && !g.leader.Deleting && !g.leaving
}

// rolls returns whether the StatefulSet controller knows of the revision, and may replace pods.
func rolls(s *snapshot) bool {
	sts := s.Leader
	return sts != nil && !s.rev.changed && !helper.Paused(s.Set) && sts.Status.ObservedGeneration >= sts.Generation &&
		sts.Labels[leaderworkersetv1.RevisionKey] == s.rev.key
}

// spareLeaders returns whether the StatefulSet controller may replace none, because so many leader pods are not
// available, or one at most, and how many more could be replaced if those of broken groups were not counted.
func spareLeaders(s *snapshot) (spare int32, stuck bool) {
	count, limit := leaderCount(s.Leader), helper.LeaderMaxUnavailable(s.Set)
	unavailable, broken := count, int32(0)
	for i := range s.groups {
		switch g := &s.groups[i]; {
		case g.index >= count:
		case leaderAvailable(g.leader):
			unavailable--
		case g.broken(s.Now.Time):
			broken++
		}
	}
	return limit - (unavailable - broken), unavailable >= limit || limit > 1 && oneAtATime(s.Leader)
}

// oneAtATime returns whether the cluster has dropped maxUnavailable, as it does without the feature.
func oneAtATime(sts *appsv1.StatefulSet) bool {
	u := sts.Spec.UpdateStrategy.RollingUpdate
	return u != nil && u.MaxUnavailable == nil
}

func leaderCount(sts *appsv1.StatefulSet) int32 { return max(0, ptr.Deref(sts.Spec.Replicas, 1)) }

func leaderAvailable(leader *Pod) bool {
	return leader.Phase == corev1.PodRunning && leader.Ready && !leader.Deleting
}

// nextBroken returns after how long the next group of a former revision counts as broken; 0 for never.
func nextBroken(s *snapshot) (after time.Duration) {
	for i := range s.groups {
		if g := &s.groups[i]; !g.updated && !g.brokenSince.IsZero() && !g.broken(s.Now.Time) {
			after = hostplan.Sooner(after, g.brokenSince.Add(brokenAfter).Sub(s.Now.Time))
		}
	}
	return after
}
