// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// TestFormerRevisionsStayUntilTheUpdateIsComplete has three revisions that no group has.
func TestFormerRevisionsStayUntilTheUpdateIsComplete(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture)
		want   int
	}{
		"complete":                         {func(*fixture) {}, 3},
		"a group is not ready":             {func(f *fixture) { f.leader(1).Ready = false }, 0},
		"a group is of a former revision":  {func(f *fixture) { f.leader(1).Revision, f.workers(1).Revision = "former-0", "former-0" }, 0},
		"one is being deleted":             {func(f *fixture) { f.Revisions[2].DeletionTimestamp = &f.Now }, 2},
		"all that a partition lets update": {func(f *fixture) { f.Set.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = ptr.To[int32](1) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, 2)
			f.Revisions[0].Revision = 9
			for i := range int64(3) {
				former := f.revision(f.Set, i)
				former.Labels[leaderworkersetv1.RevisionKey] = fmt.Sprintf("former-%d", i)
				f.Revisions = append(f.Revisions, former)
			}
			for _, r := range f.Revisions {
				r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(f.Set, leaderworkersetv1.SchemeGroupVersion.WithKind("LeaderWorkerSet"))}
			}
			c.change(f)
			p := deleteRevisions(look(f.Observed))
			if got := len(p.DeleteRevisions); got != c.want {
				t.Errorf("%d revisions are deleted, want %d", got, c.want)
			}
		})
	}
}

// TestRevisionAtWhichPodsAreCreatedIsKept has a set that was updated many times before all of its groups were ready. Until then, its leader
// StatefulSet creates pods that an update does not reach at its first revision.
func TestRevisionAtWhichPodsAreCreatedIsKept(t *testing.T) {
	const updates = 12
	for name, c := range map[string]struct {
		status  string
		key     hostplan.Known[string]
		deleted int
		kept    bool
	}{
		"a former one":                       {status: "s-1", key: hostplan.Of("former-0"), deleted: updates - 1 - maxUnused, kept: true},
		"not known":                          {status: "s-1", key: hostplan.NotObtained[string](), kept: true},
		"the StatefulSet has no status":      {deleted: updates - maxUnused},
		"the present one":                    {status: "s-1", key: hostplan.Of("present"), deleted: updates - maxUnused},
		"one without a revision of the set":  {status: "s-1", key: hostplan.Of(""), deleted: updates - maxUnused},
		"one that is gone with its contents": {status: "s-1", key: hostplan.Of("gone"), deleted: updates - maxUnused},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, 2)
			f.leader(1).Ready = false
			f.Leader = f.Leader.DeepCopy()
			f.Leader.Status.CurrentRevision, f.LeaderKey = c.status, c.key
			f.Revisions[0].Revision = updates + 1
			for i := range int64(updates) {
				former := f.revision(f.Set, i)
				former.Labels[leaderworkersetv1.RevisionKey] = fmt.Sprintf("former-%d", i)
				f.Revisions = append(f.Revisions, former)
			}
			for _, r := range f.Revisions {
				r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(f.Set, leaderworkersetv1.SchemeGroupVersion.WithKind("LeaderWorkerSet"))}
			}
			p := deleteRevisions(look(f.Observed))
			if got := len(p.DeleteRevisions); got != c.deleted {
				t.Errorf("%d revisions are deleted, want %d", got, c.deleted)
			}
			kept := !slices.ContainsFunc(p.DeleteRevisions, func(r Ref) bool { return r.Name == f.Revisions[1].Name })
			if kept != c.kept {
				t.Errorf("the first revision is kept: %t, want %t", kept, c.kept)
			}
		})
	}
}

// TestRevisionOfAMissingLeaderIsKept has a canary above a partition, which was updated many times while the groups
// below stayed, and then production loses its leaders.
func TestRevisionOfAMissingLeaderIsKept(t *testing.T) {
	const updates = 12
	for name, c := range map[string]struct {
		partition, replicas int32
		leaders             []int32
		deleted             bool
	}{
		"all leaders are there":              {1, 2, []int32{0, 1}, true},
		"production has no leader":           {1, 2, []int32{1}, false},
		"the canary has no leader":           {1, 2, []int32{0}, false},
		"scaled to zero below the partition": {1, 0, nil, false},
		"scaled down below the partition":    {3, 2, []int32{0, 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 0, 2)
			f.Set.Spec.Replicas, f.Set.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = ptr.To(c.replicas), ptr.To(c.partition)
			f.Revisions[0].Revision = updates + 1
			for i := range int64(updates) {
				former := f.revision(f.Set, i)
				former.Labels[leaderworkersetv1.RevisionKey] = fmt.Sprintf("former-%d", i)
				f.Revisions = append(f.Revisions, former)
			}
			for _, r := range f.Revisions {
				r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(f.Set, leaderworkersetv1.SchemeGroupVersion.WithKind("LeaderWorkerSet"))}
			}
			for _, index := range c.leaders {
				key := f.Revisions[0].Labels[leaderworkersetv1.RevisionKey]
				if index < c.partition {
					key = "former-0" // the production
				}
				f.addGroup(index, 2, key)
			}
			p := deleteRevisions(look(f.Observed))
			if got := len(p.DeleteRevisions) > 0; got != c.deleted {
				t.Errorf("revisions %v are deleted, want any: %t", p.DeleteRevisions, c.deleted)
			}
			for _, r := range p.DeleteRevisions {
				if r.Name == f.Revisions[1].Name {
					t.Error("the revision of the production is deleted")
				}
			}
		})
	}
}
