// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// lostGroup returns a set whose group 1 is of a revision that is lost, while the others are of the current one, with the size of the spec.
func lostGroup(t *testing.T, size int32) *fixture {
	t.Helper()
	f := newFixture(t, 3, 2)
	f.leader(1).Revision, f.leader(1).Size = "lost", 2
	f.forgetWorkers(1)
	f.Set.Spec.LeaderWorkerTemplate.GroupSize = ptr.To(size)
	f.Revisions = append(f.Revisions[:0], f.revision(f.Set, 1))
	relabel(f)
	f.leader(1).Revision = "lost"
	return f
}

// TestGroupOfLostRevisionLacksItsWorkers has groups of one pod follow groups of two.
func TestGroupOfLostRevisionLacksItsWorkers(t *testing.T) {
	f := lostGroup(t, 1)
	if g := look(f.Observed).groups[1]; g.size != 2 || g.ready || g.complete() {
		t.Errorf("size %d, ready %t, complete %t", g.size, g.ready, g.complete())
	}
	f.leader(1).Size = 0 // it does not say, and the size of the spec is all that is known
	if g := look(f.Observed).groups[1]; g.size != 1 {
		t.Errorf("size %d", g.size)
	}
}

// TestUpdateDoesNotWaitForGroupsThatCannotBeBuilt gives a group ten minutes whose leader is ready, and whose workers cannot be created.
func TestUpdateDoesNotWaitForGroupsThatCannotBeBuilt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture)
		want   bool
	}{
		"its revision is lost": {func(*fixture) {}, true},
		"its domain is unknown": {func(f *fixture) {
			f.leader(1).Revision = f.leader(0).Revision
			f.Set.Annotations = map[string]string{leaderworkersetv1.ExclusiveKeyAnnotationKey: "rack"}
		}, true},
		"its leader has no node": {func(f *fixture) {
			f.leader(1).Revision, f.leader(1).Node = f.leader(0).Revision, ""
			f.Set.Annotations = map[string]string{leaderworkersetv1.ExclusiveKeyAnnotationKey: "rack"}
		}, false},
		"its domain is known": {func(f *fixture) {
			f.leader(1).Revision = f.leader(0).Revision
			f.Set.Annotations = map[string]string{leaderworkersetv1.ExclusiveKeyAnnotationKey: "rack"}
			f.Domains = map[string]string{f.leader(1).Node: "a"}
		}, false},
		"its workers are about to be created": {func(f *fixture) { f.leader(1).Revision = f.leader(0).Revision }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := lostGroup(t, 2)
			c.change(f)
			f.later(brokenAfter - time.Second)
			if look(f.Observed).groups[1].broken(f.Now.Time) {
				t.Error("broken too early")
			}
			f.later(time.Second)
			if got := look(f.Observed).groups[1].broken(f.Now.Time); got != c.want {
				t.Errorf("broken: %t", got)
			}
		})
	}
}

// TestGroupIsUpdatedWithItsWorkers has groups of which the leader or the workers are of a former revision.
func TestGroupIsUpdatedWithItsWorkers(t *testing.T) {
	f := newFixture(t, 4, 2)
	f.leader(1).Revision = "former"
	f.workers(2).Revision = "former"
	f.leader(3).Revision, f.workers(3).Revision = "former", "former"
	var updated []int32
	for _, g := range look(f.Observed).groups {
		if g.updated {
			updated = append(updated, g.index)
		}
	}
	if diff := cmp.Diff([]int32{0}, updated); diff != "" {
		t.Error("groups of the current revision (-want +got):\n" + diff)
	}
}

// TestGroupThatGoesIsNotReady has pods that are being deleted, and whose containers still work.
func TestGroupThatGoesIsNotReady(t *testing.T) {
	f := newFixture(t, 4, 2)
	f.leader(1).Deleting = true
	f.workers(2).Deleting = true
	var ready []int32
	for _, g := range look(f.Observed).groups {
		if g.ready {
			ready = append(ready, g.index)
		}
		if !g.brokenSince.IsZero() {
			t.Errorf("group %d is broken since %s", g.index, g.brokenSince)
		}
	}
	if diff := cmp.Diff([]int32{0, 3}, ready); diff != "" {
		t.Error("groups that are ready (-want +got):\n" + diff)
	}
}
