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
func replaceStuck(o Observed, rev revision, groups []group, p *Plan) {
	if !rolls(o, rev) {
		return
	}
	p.actAfter(nextBroken(o, groups))
	spare, stuck := spareLeaders(o, groups)
	if !stuck {
		return
	}
	count, lowest := leaderCount(o.Leader), partitionOf(o.Leader)
	for i := range slices.Backward(groups) {
		g := &groups[i]
		released := g.index < count && g.index >= lowest && g.leader.Revision != rev.key
		switch {
		case !released || g.leader.Deleting || g.leaving || g.counted:
		case !leaderAvailable(g.leader):
			deleteLeader(g.leader, p)
		case spare > 0:
			spare--
			deleteLeader(g.leader, p)
		}
	}
}

// rolls returns whether the StatefulSet controller knows of the revision, and may replace pods.
func rolls(o Observed, rev revision) bool {
	sts := o.Leader
	return sts != nil && !rev.changed && !helper.Paused(o.Set) && sts.Status.ObservedGeneration >= sts.Generation &&
		sts.Labels[leaderworkersetv1.RevisionKey] == rev.key
}

// spareLeaders returns whether the StatefulSet controller may replace none, because so many leader pods are not
// available, or one at most, and how many more could be replaced if those of broken groups were not counted.
func spareLeaders(o Observed, groups []group) (spare int32, stuck bool) {
	count, limit := leaderCount(o.Leader), helper.LeaderMaxUnavailable(o.Set)
	unavailable, broken := count, int32(0)
	for i := range groups {
		switch g := &groups[i]; {
		case g.index >= count:
		case leaderAvailable(g.leader):
			unavailable--
		case g.broken(o.Now.Time):
			broken++
		}
	}
	return limit - (unavailable - broken), unavailable >= limit || limit > 1 && oneAtATime(o.Leader)
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

// deleteLeader deletes a leader pod unless the plan does so already.
func deleteLeader(leader *Pod, p *Plan) {
	planned := slices.ContainsFunc(p.DeleteLeaders, func(d Deletion) bool { return d.UID == leader.UID })
	if !planned && len(p.DeleteLeaders) < maxWrites {
		p.DeleteLeaders = append(p.DeleteLeaders, Deletion{Ref: leader.Ref})
	}
}

// nextBroken returns after how long the next group of a former revision counts as broken; 0 for never.
func nextBroken(o Observed, groups []group) (after time.Duration) {
	for i := range groups {
		if g := &groups[i]; !g.updated && !g.brokenSince.IsZero() && !g.broken(o.Now.Time) {
			after = hostplan.Sooner(after, g.brokenSince.Add(brokenAfter).Sub(o.Now.Time))
		}
	}
	return after
}
