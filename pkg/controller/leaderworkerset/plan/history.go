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
func deleteRevisions(s *snapshot) (p Plan) {
	if s.Leader == nil || s.LeaderTaken || s.rev.create != nil {
		return p
	}
	creates, known := s.LeaderKey.Get()
	if s.Leader.Status.CurrentRevision != "" && !known {
		return p
	}
	limit := unusedLimit(s)
	used := map[string]bool{s.rev.key: true, s.Leader.Labels[leaderworkersetv1.RevisionKey]: true, creates: true}
	for i := range s.Leaders {
		used[s.Leaders[i].Revision] = true
	}
	seen := map[string]bool{}
	for _, r := range ownedRevisions(s) {
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
	return p
}

// ownedRevisions returns the revisions of the set, the newest first, less those that are being deleted.
func ownedRevisions(s *snapshot) []*appsv1.ControllerRevision {
	owned := slices.DeleteFunc(slices.Clone(s.Revisions), func(r *appsv1.ControllerRevision) bool {
		return !metav1.IsControlledBy(r, s.Set) || r.DeletionTimestamp != nil
	})
	slices.SortFunc(owned, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), cmp.Compare(b.Name, a.Name))
	})
	return owned
}

// unusedLimit returns how many revisions are kept that no group has.
func unusedLimit(s *snapshot) int {
	limit := int(max(0, ptr.Deref(s.Set.Spec.RevisionHistoryLimit, 0)))
	if s.rev.changed || !updateDone(s) {
		limit = max(limit, maxUnused)
	}
	if awaitsLeader(s) {
		limit = max(limit, maxAwaited)
	}
	return limit
}

// awaitsLeader returns whether a leader pod is missing that the leader StatefulSet creates now, or after the set was
// scaled up. Those below the partition are created at the revision that was the last one whose update was completed.
func awaitsLeader(s *snapshot) bool {
	wanted := max(helper.Partition(s.Set), helper.Replicas(s.Set))
	exist := int32(0)
	for i := range s.groups {
		if s.groups[i].index < wanted {
			exist++
		}
	}
	return exist < wanted
}

// updateDone returns whether all groups are ready at the current revision.
func updateDone(s *snapshot) bool {
	replicas := helper.Replicas(s.Set)
	return helper.Partition(s.Set) == 0 && count(s.groups, replicas, 0).done == replicas
}
