// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// leaveLeader takes the leader of a group away, as the watch of pods shows it.
func (f *fixture) leaveLeader(index int32) Pod {
	f.t.Helper()
	gone := *f.leader(index)
	f.replace(index)
	f.GoneLeaders = append(f.GoneLeaders, gone)
	return gone
}

// recreations returns the notes of the events about recreated groups.
func recreations(p Plan) (notes []string) {
	for _, e := range p.Events {
		if e.Reason == reasonRecreateGroup {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// TestDeletedLeaderIsRecorded has the leader of a group deleted by another client than the controller.
func TestDeletedLeaderIsRecorded(t *testing.T) {
	const old = "old"
	none := leaderworkersetv1.RestartPolicyNone
	for name, c := range map[string]struct {
		change func(f *fixture)
		want   int32
		event  string
	}{
		"nothing has happened": {change: func(*fixture) {}},
		"it is being deleted":  {func(f *fixture) { f.leader(1).Deleting = true }, 1, "Leader pod s-1 was deleted, group 1 is recreated"},
		"it is being deleted, policy None": {func(f *fixture) {
			f.Set.Spec.LeaderWorkerTemplate.RestartPolicy = none
			f.Revisions = append(f.Revisions[:0], f.revision(f.Set, 1))
			relabel(f)
			f.leader(1).Deleting = true
		}, 1, "Leader pod s-1 was deleted, group 1 is recreated"},
		"it is gone": {func(f *fixture) { f.leaveLeader(1) }, 1, "Leader pod s-1 was deleted, group 1 is recreated"},
		"it is gone, and so is the next one": {func(f *fixture) {
			f.leaveLeader(1)
			f.leaveLeader(1)
		}, 2, "Leader pod s-1 was deleted, group 1 is recreated"},
		"it is gone, and the next one is being deleted": {func(f *fixture) {
			f.leaveLeader(1)
			f.leader(1).Deleting = true
		}, 2, "Leader pod s-1 was deleted, group 1 is recreated"},
		"the set was scaled down": {change: func(f *fixture) {
			f.Set.Spec.Replicas, f.Leader.Spec.Replicas = ptr.To[int32](1), ptr.To[int32](1)
			f.leader(1).Deleting = true
		}},
		"the update has released it": {change: func(f *fixture) { f.leader(1).Revision, f.leader(1).Deleting = old, true }},
		"it is of an old revision below the partition": {func(f *fixture) {
			f.Set.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = ptr.To[int32](2)
			f.Leader.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)}
			f.leader(1).Revision, f.leader(1).Deleting = old, true
		}, 1, "Leader pod s-1 was deleted, group 1 is recreated"},
		"its StatefulSet replaces it after a change of the template": {change: func(f *fixture) {
			f.Leader.Status.UpdateRevision, f.leader(1).OwnRevision, f.leader(1).Deleting = "s-new", "s-old", true
		}},
		"its StatefulSet has the template of the pod": {func(f *fixture) {
			f.Leader.Status.UpdateRevision, f.leader(1).OwnRevision, f.leader(1).Deleting = "s-new", "s-new", true
		}, 1, "Leader pod s-1 was deleted, group 1 is recreated"},
		"its StatefulSet has not seen a change": {change: func(f *fixture) {
			f.Leader.Generation, f.Leader.Status.ObservedGeneration = 2, 1
			f.leader(1).Deleting = true
		}},
		"users have requested it": {change: func(f *fixture) {
			f.Set.Status.Restart = &leaderworkersetv1.RequestedRestart{Groups: []int32{1}, Leaders: []types.UID{f.leader(1).UID}, Found: true}
			f.leader(1).Deleting = true
		}},
		"it belonged to another StatefulSet": {change: func(f *fixture) {
			gone := f.leaveLeader(1)
			gone.Controller = "another"
			f.GoneLeaders[0] = gone
		}},
		"it was evaluated before": {change: func(f *fixture) {
			f.Evaluated = map[types.UID]bool{f.leader(1).UID: true}
			f.leader(1).Deleting = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, 3)
			f.stabilize()
			c.change(f)
			var notes []string
			for range 6 {
				p := f.pass()
				if len(p.DeleteLeaders) > 0 {
					t.Errorf("leaders to delete: %v", deleted(p))
				}
				notes = append(notes, recreations(p)...)
			}
			if got := f.status(1).Restarts; got != c.want || len(notes) != int(c.want) {
				t.Errorf("%d restarts with events %q, want %d", got, notes, c.want)
			}
			if c.want == 0 {
				return
			}
			if notes[0] != c.event || f.status(1).LastRestartTime == nil {
				t.Errorf("event %q, want %q; entry %+v", notes[0], c.event, f.status(1))
			}
			cause := f.status(1).FirstCause
			if cause == nil || cause.Pod != "s-1" || cause.Job != "s" || cause.Message != "the pod was deleted" {
				t.Errorf("first cause %+v", cause)
			}
		})
	}
}

// TestDeletedLeaderHasItsFirstCause has a container of a worker fail before a user deletes the leader.
func TestDeletedLeaderHasItsFirstCause(t *testing.T) {
	f := newFixture(t, 2, 3)
	f.stabilize()
	f.worker(1, 1).Restarted, f.leader(1).Deleting = true, true
	want := []MissingCause{{Leader: f.leader(1).UID, Name: "s-1", Workers: f.workers(1).UID}}
	if diff := cmp.Diff(want, Decide(f.Observed).Asks.Causes); diff != "" {
		t.Fatal("missing causes (-want +got):\n" + diff)
	}
	f.Causes = causes(map[types.UID]*jobsetv1alpha2.FailureCause{f.leader(1).UID: {Job: "s-1", Pod: "s-1-1", Reason: "OOMKilled"}})
	if notes := recreations(f.pass()); len(notes) != 1 {
		t.Errorf("events %q", notes)
	}
	if cause := f.status(1).FirstCause; cause == nil || cause.Reason != "OOMKilled" {
		t.Errorf("first cause %+v", cause)
	}
	if missing := Decide(f.Observed).Asks.Causes; len(missing) > 0 {
		t.Errorf("missing causes of what is recorded: %+v", missing)
	}
}

// TestDeletedLeaderAndTheLimit has the leaders of groups deleted that wait, or have used up their restarts: they are
// recreated nevertheless, which counts no more.
func TestDeletedLeaderAndTheLimit(t *testing.T) {
	for name, prepare := range map[string]func(f *fixture){
		"the group has used up its restarts": func(f *fixture) {
			f.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](1)
			f.Set.Status.Groups = []leaderworkersetv1.GroupStatus{{Index: 1, Restarts: 1, RestartedLeader: f.leader(1).UID, Failed: true}}
		},
		"the group is at its limit, and works": func(f *fixture) {
			f.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](1)
			f.Set.Status.Groups = []leaderworkersetv1.GroupStatus{{Index: 1, Restarts: 1, RestartedLeader: "before"}}
		},
		"the group waits for its restart": func(f *fixture) {
			f.Set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{BaseSeconds: ptr.To[int32](60)}
			at := f.Now
			at.Time = at.Add(60e9)
			f.Set.Status.Groups = []leaderworkersetv1.GroupStatus{{Index: 1, Restarts: 1, RestartsInRow: 2, RestartedLeader: f.leader(1).UID, RestartAt: &at}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, 3)
			f.stabilize()
			prepare(f)
			f.leader(1).Deleting = true
			var notes []string
			for range 4 {
				notes = append(notes, recreations(f.pass())...)
			}
			e := f.status(1)
			if e.Restarts != 1 || e.Failed || e.RestartAt != nil || e.LastRestartTime == nil || e.RestartedLeader != f.leader(1).UID {
				t.Errorf("entry %+v", e)
			}
			if len(notes) != 1 || !strings.Contains(notes[0], "Leader pod s-1 was deleted") {
				t.Errorf("events %q", notes)
			}
		})
	}
}

// TestEvaluatedLeadersAreRemembered has a set scaled down and up again while its highest leader is on its way out: that
// is no recreation of the group.
func TestEvaluatedLeadersAreRemembered(t *testing.T) {
	f := newFixture(t, 2, 3)
	f.stabilize()
	f.Set.Spec.Replicas, f.Leader.Spec.Replicas = ptr.To[int32](1), ptr.To[int32](1)
	f.leader(1).Deleting = true
	p := f.pass()
	if diff := cmp.Diff([]types.UID{f.leader(1).UID}, p.Evaluated); diff != "" {
		t.Fatal("evaluated (-want +got):\n" + diff)
	}
	f.Evaluated = map[types.UID]bool{f.leader(1).UID: true}
	f.Set.Spec.Replicas, f.Leader.Spec.Replicas = ptr.To[int32](2), ptr.To[int32](2)
	f.stabilize()
	if got := f.status(1); got.Restarts != 0 {
		t.Errorf("entry %+v", got)
	}
}

// TestWorkerThatNeverStartedIsNoFailure has a worker deleted that still waits for its node, as what is left of the
// group before may make the garbage collector do.
func TestWorkerThatNeverStartedIsNoFailure(t *testing.T) {
	f := newFixture(t, 2, 2)
	f.stabilize()
	f.worker(1, 1).Phase, f.worker(1, 1).Ready, f.worker(1, 1).Deleting = corev1.PodPending, false, true
	f.stabilize()
	if p := Decide(f.Observed); len(p.DeleteLeaders) > 0 || len(f.Set.Status.Groups) > 0 {
		t.Errorf("leaders to delete: %v, groups %+v", deleted(p), f.Set.Status.Groups)
	}
}

// TestRecordedLeadersCountOnce has the leader of a group be deleted twice, and the answers to both status writes be lost: what was to be
// remembered once a status is stored is not, and the second status names only the second leader.
func TestRecordedLeadersCountOnce(t *testing.T) {
	f := newFixture(t, 2, 3)
	f.stabilize()
	first := f.leaveLeader(1)
	f.pass()
	f.GoneLeaders, f.Evaluated = []Pod{first}, nil
	second := f.leaveLeader(1)
	p := decide(t, f.Observed)
	if diff := cmp.Diff([]types.UID{first.UID}, p.Recorded); diff != "" {
		t.Error("leaders that the stored status names (-want +got):\n" + diff)
	}
	f.Set.Status = *p.Status
	f.GoneLeaders = slices.DeleteFunc(f.GoneLeaders, func(gone Pod) bool { return slices.Contains(p.Recorded, gone.UID) })
	f.stabilize()
	if got := f.status(1); got.Restarts != 2 || got.RestartedLeader != second.UID {
		t.Errorf("entry %+v, want 2 restarts, the last one because of %s", got, second.UID)
	}
}

// TestLeadersBeforeTheRecordedOneCountOnce has another process record that two leaders of a group were deleted, one after the other, before this
// one looks at the set again. It remembers both.
func TestLeadersBeforeTheRecordedOneCountOnce(t *testing.T) {
	f := newFixture(t, 2, 3)
	f.stabilize()
	first, second := f.leaveLeader(1), f.leaveLeader(1)
	f.stabilize()
	before := f.status(1)
	f.GoneLeaders, f.Evaluated = []Pod{first, second}, nil
	p := f.stabilize()
	if got := f.status(1); before.Restarts != 2 || got.Restarts != 2 || got.RestartedLeader != second.UID || len(recreations(p)) > 0 {
		t.Errorf("entry %+v was recorded, and now it is %+v, want 2 restarts", before, got)
	}
}
