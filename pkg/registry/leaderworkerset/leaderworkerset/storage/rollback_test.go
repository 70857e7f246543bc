// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/actions"
)

// history are three revisions of the set, in no order, and one of another set with the same label.
func history(t *testing.T) []appsv1.ControllerRevision {
	foreign := revision(t, 9, llm(image("foreign")))
	foreign.OwnerReferences[0].UID = "uid-9"
	return []appsv1.ControllerRevision{
		revision(t, 3, llm()), revision(t, 1, llm(image("v1"))), foreign,
		revision(t, 2, llm(image("v2"), func(s *leaderworkerset.LeaderWorkerSet) {
			s.Spec.NetworkConfig.SubdomainPolicy = ptr.To(leaderworkerset.SubdomainUniquePerReplica)
			s.Spec.Replicas, s.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](1), ptr.To[int32](7)
		})),
	}
}

func to(n int64) batch.LeaderWorkerSetRollbackSpec {
	return batch.LeaderWorkerSetRollbackSpec{ToRevision: n}
}

func TestRollback(t *testing.T) {
	limited := func(s *leaderworkerset.LeaderWorkerSet) {
		s.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](3)
	}
	cases := map[string]struct {
		set      *leaderworkerset.LeaderWorkerSet
		spec     batch.LeaderWorkerSetRollbackSpec
		image    string
		unique   bool
		revision int64
		message  string
	}{
		"to the one before": {llm(limited), to(0), "v2", true, 2, "the LeaderWorkerSet was rolled back to revision 2"},
		"to the oldest":     {llm(limited), to(1), "v1", false, 1, "the LeaderWorkerSet was rolled back to revision 1"},
		"of an edit that has no revision yet": {llm(limited, image("v4"), func(s *leaderworkerset.LeaderWorkerSet) { s.Generation = 4 }), to(0), "v3", false, 3,
			"the LeaderWorkerSet was rolled back to revision 3"},
		"of a paused set": {llm(limited, pausedSet), to(1), "v1", false, 1,
			"the LeaderWorkerSet was rolled back to revision 1; no group is replaced until it is resumed"},
		"after a rollback": {llm(limited, image("v2"), func(s *leaderworkerset.LeaderWorkerSet) {
			s.Status.LastAction = &leaderworkerset.LastAction{Action: leaderworkerset.ActionRollback, User: "bob", Revision: 2}
		}), to(0), "v3", false, 3, "the LeaderWorkerSet was rolled back to revision 3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := tc.set.DeepCopy()
			tc.spec.Reason = "slow"
			got, err := actions.RollbackTo(history(t))(tc.set, &tc.spec, call())
			if err != nil {
				t.Fatal(err)
			}
			image(tc.image)(want)
			if tc.unique {
				want.Spec.NetworkConfig.SubdomainPolicy = ptr.To(leaderworkerset.SubdomainUniquePerReplica)
			}
			want.Status.LastAction = &leaderworkerset.LastAction{Action: leaderworkerset.ActionRollback, User: "alice", Reason: "slow", Time: &stored, Revision: tc.revision}
			if diff := cmp.Diff(want, tc.set); diff != "" {
				t.Errorf("set (-want +got):\n%s", diff)
			}
			answer := &batch.LeaderWorkerSetActionStatus{UID: "uid-1", Revision: tc.revision, User: "alice", Time: &stored, Message: tc.message}
			if diff := cmp.Diff(answer, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRollbackTwice checks that a request that is sent twice does not undo itself.
func TestRollbackTwice(t *testing.T) {
	set, spec := llm(), to(0)
	spec.Preconditions = generation(3)
	first, err := actions.RollbackTo(history(t))(set, &spec, call())
	if err != nil {
		t.Fatal(err)
	}
	set.Generation++ // what the strategy does
	again, err := actions.RollbackTo(history(t))(set, &spec, later("bob", time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("answer to the repeated request (-first +second):\n%s", diff)
	}

	before, unconditional := set.DeepCopy(), to(0)
	joined, err := actions.RollbackTo(history(t))(set, &unconditional, later("bob", time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	want := &batch.LeaderWorkerSetActionStatus{UID: "uid-1", Message: "the rollback to revision 2, requested 60s ago by alice, has not begun; not rolled back again"}
	if diff := cmp.Diff(want, joined); diff != "" {
		t.Errorf("answer before the controller has seen the rollback (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, set); diff != "" {
		t.Errorf("the set changed:\n%s", diff)
	}

	set.Status.ObservedGeneration = set.Generation
	if got, err := actions.RollbackTo(history(t))(set, &unconditional, later("bob", time.Hour)); err != nil || got.Revision != 3 {
		t.Errorf("a rollback after the first is under way returned %+v, %v; want revision 3", got, err)
	}
}

func TestRollbackRefusals(t *testing.T) {
	none := func(s *leaderworkerset.LeaderWorkerSet) { s.Spec.RevisionHistoryLimit = nil }
	const limit = "; spec.revisionHistoryLimit is 0, so that former revisions are deleted when an update is complete; a higher number keeps that many from the next update on"
	const kept = "; spec.revisionHistoryLimit is 5, so that as many former revisions are kept when an update is complete"
	invalid := `LeaderWorkerSetRollback.batch.jobset-apiserver.io "llm" is invalid: spec.toRevision: Invalid value: `
	only := []appsv1.ControllerRevision{revision(t, 3, llm())}
	var many []appsv1.ControllerRevision
	for n := range int64(25) {
		many = append(many, revision(t, n+1, llm()))
	}
	broken := func(data string) []appsv1.ControllerRevision {
		return []appsv1.ControllerRevision{raw(2, "uid-1", []byte(data)), revision(t, 3, llm())}
	}
	cases := map[string]struct {
		set       *leaderworkerset.LeaderWorkerSet
		revisions []appsv1.ControllerRevision
		spec      batch.LeaderWorkerSetRollbackSpec
		want      string
	}{
		"another set": {llm(), history(t), batch.LeaderWorkerSetRollbackSpec{Preconditions: other()},
			prefix + "preconditions.uid is uid-0, but the LeaderWorkerSet has the UID uid-1: it was deleted and recreated"},
		"a set that is being deleted": {llm(deleting), history(t), to(1), prefix + "the LeaderWorkerSet is being deleted; recreate it after it is gone"},
		"an earlier generation": {llm(), history(t), batch.LeaderWorkerSetRollbackSpec{Preconditions: generation(2)},
			prefix + "preconditions.generation is 2, but generation 3 is current"},
		"a number that does not exist": {llm(), history(t), to(4),
			invalid + "4: must be the number of a revision of the LeaderWorkerSet: 1, 2, 3 exist" + kept},
		"the revision of another set": {llm(), history(t), to(9),
			invalid + "9: must be the number of a revision of the LeaderWorkerSet: 1, 2, 3 exist" + kept},
		"one of many": {llm(none), many, to(99), invalid + "99: must be the number of a revision of the LeaderWorkerSet: " +
			"5 older ones, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25 exist" + limit},
		"no history": {llm(none), only, to(0), prefix + "there is no former revision to return to: only revision 3 exists" + limit},
		"nothing":    {llm(), nil, to(0), prefix + "there is no former revision to return to: none exists" + kept},
		"an unknown field": {llm(), broken(`{"spec":{"leaderWorkerTemplate":{"$patch":"replace","workerTemplate":{"spec":{"containers":[]}},"groupIdentity":"Hash"}}}`), to(2),
			prefix + `revision 2 cannot be restored: spec.leaderWorkerTemplate: unknown field "groupIdentity"`},
		"an unknown field of a template": {llm(), broken(`{"spec":{"leaderWorkerTemplate":{"workerTemplate":{"spec":{"containers":[{"imagee":"a"}]}}}}}`), to(0),
			prefix + `revision 2 cannot be restored: spec.leaderWorkerTemplate: unknown field "workerTemplate.spec.containers[0].imagee"`},
		"an unknown field of the spec": {llm(), broken(`{"spec":{"leaderWorkerTemplate":{"workerTemplate":{"spec":{"containers":[]}}},"replicas":4}}`), to(2),
			prefix + `revision 2 cannot be restored: unknown field "spec.replicas"`},
		"no template": {llm(), broken(`{"spec":{"networkConfig":{"subdomainPolicy":"Shared"}}}`), to(2),
			prefix + "revision 2 cannot be restored: it has no spec.leaderWorkerTemplate"},
		"no JSON": {llm(), broken(`replicas`), to(2), prefix + "revision 2 cannot be restored: invalid character 'r' looking for beginning of value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.set.DeepCopy()
			_, err := actions.RollbackTo(tc.revisions)(tc.set, &tc.spec, call())
			if diff := cmp.Diff(tc.want, text(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.set); diff != "" {
				t.Errorf("the set changed:\n%s", diff)
			}
		})
	}
	t.Run("the current revision", func(t *testing.T) {
		set, spec := llm(), to(3)
		got, err := actions.RollbackTo(history(t))(set, &spec, call())
		want := &batch.LeaderWorkerSetActionStatus{UID: "uid-1", Message: "the LeaderWorkerSet is already at revision 3; nothing changed"}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, answer (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff(llm(), set); diff != "" {
			t.Errorf("the set changed:\n%s", diff)
		}
	})
}

// TestRollbackSaysWhatIsKept has the answer say that the user cannot return later to the revision that the set leaves, if that is so.
func TestRollbackSaysWhatIsKept(t *testing.T) {
	none := func(s *leaderworkerset.LeaderWorkerSet) { s.Spec.RevisionHistoryLimit = nil }
	for name, tc := range map[string]struct {
		set  *leaderworkerset.LeaderWorkerSet
		want string
	}{
		"former revisions are kept":     {llm(), "the LeaderWorkerSet was rolled back to revision 1"},
		"former revisions are not kept": {llm(none), "the LeaderWorkerSet was rolled back to revision 1; spec.revisionHistoryLimit is 0, so that the revision which it leaves is deleted when the update is complete"},
	} {
		rev := to(1)
		got, err := actions.RollbackTo(history(t))(tc.set, &rev, later("bob", time.Minute))
		if err != nil || got.Message != tc.want {
			t.Errorf("%s: got %+v, %v; want %s", name, got, err, tc.want)
		}
	}
}
