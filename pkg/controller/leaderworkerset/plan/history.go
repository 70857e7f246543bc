// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

const (
	// maxUnused is how many revisions that no group has are kept during an update, which may never end.
	maxUnused = 10
	// maxAwaited is how many are kept while a leader pod is missing: the leader StatefulSet is going to create it at a
	// revision that maybe no other group has.
	maxAwaited = 100
)

// deleteRevisions deletes former revisions: once the update is complete those beyond spec.revisionHistoryLimit, and
// before it what would grow without bound. Those that a group has, or may be created at, stay in any case.
func deleteRevisions(o Observed, rev revision, groups []group, p *Plan) {
	if o.Leader == nil || o.LeaderTaken || rev.create != nil {
		return
	}
	creates, known := o.LeaderKey.Get()
	if o.Leader.Status.CurrentRevision != "" && !known {
		return
	}
	limit := unusedLimit(o, rev, groups)
	used := map[string]bool{rev.key: true, o.Leader.Labels[leaderworkersetv1.RevisionKey]: true, creates: true}
	for i := range o.Leaders {
		used[o.Leaders[i].Revision] = true
	}
	seen := map[string]bool{}
	for _, r := range ownedRevisions(o) {
		key := r.Labels[leaderworkersetv1.RevisionKey]
		switch {
		case seen[key]:
			// Only the newest one of a key counts.
		case used[key]:
			seen[key] = true
			continue
		case limit > 0:
			seen[key] = true
			limit--
			continue
		}
		if len(p.DeleteRevisions) < maxWrites {
			p.DeleteRevisions = append(p.DeleteRevisions, Ref{Name: r.Name, UID: r.UID})
		}
	}
}

// ownedRevisions returns the revisions of the set, the newest first, less those that are being deleted.
func ownedRevisions(o Observed) []*appsv1.ControllerRevision {
	owned := slices.DeleteFunc(slices.Clone(o.Revisions), func(r *appsv1.ControllerRevision) bool {
		return !metav1.IsControlledBy(r, o.Set) || r.DeletionTimestamp != nil
	})
	slices.SortFunc(owned, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), cmp.Compare(b.Name, a.Name))
	})
	return owned
}

// unusedLimit returns how many revisions are kept that no group has.
func unusedLimit(o Observed, rev revision, groups []group) int {
	limit := int(max(0, ptr.Deref(o.Set.Spec.RevisionHistoryLimit, 0)))
	if rev.changed || !updateDone(o, groups) {
		limit = max(limit, maxUnused)
	}
	if awaitsLeader(o, groups) {
		limit = max(limit, maxAwaited)
	}
	return limit
}

// awaitsLeader returns whether a leader pod is missing that the leader StatefulSet creates now, or after the set was
// scaled up. Those below the partition are created at the revision that was the last one whose update was completed.
func awaitsLeader(o Observed, groups []group) bool {
	wanted := max(helper.Partition(o.Set), helper.Replicas(o.Set))
	exist := int32(0)
	for i := range groups {
		if groups[i].index < wanted {
			exist++
		}
	}
	return exist < wanted
}

// updateDone returns whether all groups are ready at the current revision.
func updateDone(o Observed, groups []group) bool {
	replicas := helper.Replicas(o.Set)
	return helper.Partition(o.Set) == 0 && count(groups, replicas, 0).done == replicas
}
