// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/actions"
)

var earlier = metav1.NewMicroTime(now.Add(-time.Minute))

// restarting is a set with a restart that bob has requested.
func restarting(r leaderworkerset.RequestedRestart) func(*leaderworkerset.LeaderWorkerSet) {
	return func(set *leaderworkerset.LeaderWorkerSet) {
		r.RequestTime = earlier
		set.Status.Restart = &r
		set.Status.LastAction = &leaderworkerset.LastAction{Action: leaderworkerset.ActionRestart, User: "bob", Time: &earlier}
	}
}

func group(n int32) batch.LeaderWorkerSetRestartSpec {
	return batch.LeaderWorkerSetRestartSpec{Group: &n}
}

func TestRestartRequests(t *testing.T) {
	found := leaderworkerset.RequestedRestart{Groups: []int32{2}, Leaders: []types.UID{"l2"}, Found: true}
	cases := map[string]struct {
		set  *leaderworkerset.LeaderWorkerSet
		spec batch.LeaderWorkerSetRestartSpec
		want leaderworkerset.RequestedRestart
	}{
		"all groups":  {llm(), batch.LeaderWorkerSetRestartSpec{}, leaderworkerset.RequestedRestart{All: true}},
		"one group":   {llm(), group(3), leaderworkerset.RequestedRestart{Groups: []int32{3}}},
		"the default": {llm(func(s *leaderworkerset.LeaderWorkerSet) { s.Spec.Replicas = nil }), group(0), leaderworkerset.RequestedRestart{Groups: []int32{0}}},
		"another group before the first was found": {
			llm(restarting(leaderworkerset.RequestedRestart{Groups: []int32{2}})), group(1), leaderworkerset.RequestedRestart{Groups: []int32{1, 2}},
		},
		"another group after the first was found": {
			llm(restarting(found)), group(1), leaderworkerset.RequestedRestart{Groups: []int32{1}, Leaders: []types.UID{"l2"}},
		},
		"all groups after one": {
			llm(restarting(found)), batch.LeaderWorkerSetRestartSpec{}, leaderworkerset.RequestedRestart{All: true, Leaders: []types.UID{"l2"}},
		},
		"for the generation and the number of restarts": {
			llm(func(s *leaderworkerset.LeaderWorkerSet) {
				s.Status.Groups = []leaderworkerset.GroupStatus{{Index: 0, Restarts: 9}, {Index: 1, Restarts: 2}}
			}),
			batch.LeaderWorkerSetRestartSpec{Group: ptr.To[int32](1), Preconditions: &batch.LeaderWorkerSetPreconditions{
				UID: ptr.To(types.UID("uid-1")), Generation: ptr.To[int64](3), Restarts: ptr.To[int32](2)}},
			leaderworkerset.RequestedRestart{Groups: []int32{1}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.set.DeepCopy()
			tc.spec.Reason = "stuck"
			got, err := actions.Restart(tc.set, &tc.spec, call())
			if err != nil {
				t.Fatal(err)
			}
			want := before
			tc.want.RequestTime = stored
			want.Status.Restart = &tc.want
			want.Status.LastAction = &leaderworkerset.LastAction{Action: leaderworkerset.ActionRestart, User: "alice", Reason: "stuck", Time: &stored, Group: tc.spec.Group}
			if diff := cmp.Diff(want, tc.set); diff != "" {
				t.Errorf("set (-want +got):\n%s", diff)
			}
			message := "the restart of all groups was requested"
			if tc.spec.Group != nil {
				message = "the restart of group " + string(rune('0'+*tc.spec.Group)) + " was requested"
			}
			answer := &batch.LeaderWorkerSetActionStatus{UID: "uid-1", User: "alice", Time: &stored, Message: message}
			if diff := cmp.Diff(answer, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestartRequestedAlready(t *testing.T) {
	cases := map[string]struct {
		set  *leaderworkerset.LeaderWorkerSet
		spec batch.LeaderWorkerSetRestartSpec
		want string
	}{
		"all": {
			llm(restarting(leaderworkerset.RequestedRestart{All: true})), batch.LeaderWorkerSetRestartSpec{},
			"a restart of all groups, requested 60s ago by bob, is not complete; not restarted again",
		},
		"a group, with all": {
			llm(restarting(leaderworkerset.RequestedRestart{All: true, Found: true})), group(1),
			"a restart of all groups, requested 60s ago by bob, is not complete; not restarted again",
		},
		"the same group": {
			llm(restarting(leaderworkerset.RequestedRestart{Groups: []int32{1}, Found: true})), group(1),
			"a restart of group 1, requested 60s ago by bob, is not complete; not restarted again",
		},
		"the same group, of an earlier generation": {
			llm(restarting(leaderworkerset.RequestedRestart{Groups: []int32{1}})),
			batch.LeaderWorkerSetRestartSpec{Group: ptr.To[int32](1), Preconditions: generation(2)},
			"a restart of group 1, requested 60s ago by bob, is not complete; not restarted again",
		},
		"after another action": {
			llm(restarting(leaderworkerset.RequestedRestart{All: true}), func(s *leaderworkerset.LeaderWorkerSet) {
				s.Status.LastAction = &leaderworkerset.LastAction{Action: leaderworkerset.ActionPause, User: "carl"}
			}), batch.LeaderWorkerSetRestartSpec{},
			"a restart of all groups, requested 60s ago, is not complete; not restarted again",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.set.DeepCopy()
			got, err := actions.Restart(tc.set, &tc.spec, call())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, tc.set); diff != "" {
				t.Errorf("the set changed:\n%s", diff)
			}
			if diff := cmp.Diff(&batch.LeaderWorkerSetActionStatus{UID: "uid-1", Message: tc.want}, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestartRefusals(t *testing.T) {
	full := leaderworkerset.RequestedRestart{}
	for i := range int32(1000) {
		full.Groups = append(full.Groups, i)
	}
	restarts := func(n int32) batch.LeaderWorkerSetRestartSpec {
		return batch.LeaderWorkerSetRestartSpec{Group: ptr.To[int32](1), Preconditions: &batch.LeaderWorkerSetPreconditions{Restarts: &n}}
	}
	cases := map[string]struct {
		set  *leaderworkerset.LeaderWorkerSet
		spec batch.LeaderWorkerSetRestartSpec
		want string
	}{
		"another set": {llm(), batch.LeaderWorkerSetRestartSpec{Preconditions: other()},
			prefix + "preconditions.uid is uid-0, but the LeaderWorkerSet has the UID uid-1: it was deleted and recreated"},
		"a set that is being deleted": {llm(deleting), batch.LeaderWorkerSetRestartSpec{},
			prefix + "the LeaderWorkerSet is being deleted; recreate it after it is gone"},
		"an earlier generation": {llm(), batch.LeaderWorkerSetRestartSpec{Preconditions: generation(2)},
			prefix + "preconditions.generation is 2, but generation 3 is current"},
		"a later generation": {llm(), batch.LeaderWorkerSetRestartSpec{Preconditions: generation(4)},
			prefix + "preconditions.generation is 4, but generation 3 is current"},
		"a group that was restarted since": {
			llm(func(s *leaderworkerset.LeaderWorkerSet) {
				s.Status.Groups = []leaderworkerset.GroupStatus{{Index: 1, Restarts: 1}}
			}), restarts(0), prefix + "preconditions.restarts is 0, but group 1 has been restarted once"},
		"a group that was not restarted": {llm(), restarts(2), prefix + "preconditions.restarts is 2, but group 1 has been restarted 0 times"},
		"no groups": {llm(func(s *leaderworkerset.LeaderWorkerSet) { s.Spec.Replicas = ptr.To[int32](0) }), batch.LeaderWorkerSetRestartSpec{},
			prefix + "the LeaderWorkerSet has no groups (spec.replicas is 0), so there is nothing to restart"},
		"a group that the set does not have": {llm(), group(4),
			`LeaderWorkerSetRestart.batch.jobset-apiserver.io "llm" is invalid: spec.group: Invalid value: 4: must be the index of a group of the LeaderWorkerSet, from 0 to 3`},
		"too many groups": {
			llm(restarting(full), func(s *leaderworkerset.LeaderWorkerSet) { s.Spec.Replicas = ptr.To[int32](2000) }), group(1000),
			prefix + "restarts of 1000 groups are pending, which is the limit; try again when the first have begun, or restart the whole LeaderWorkerSet"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.set.DeepCopy()
			_, err := actions.Restart(tc.set, &tc.spec, call())
			if diff := cmp.Diff(tc.want, text(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.set); diff != "" {
				t.Errorf("the set changed:\n%s", diff)
			}
		})
	}
}

// TestUserIsBounded checks that the name of a user does not make the status grow without limit.
func TestUserIsBounded(t *testing.T) {
	set := llm()
	if _, err := actions.Restart(set, &batch.LeaderWorkerSetRestartSpec{}, actions.Call{User: strings.Repeat("é", 200), Now: now}); err != nil {
		t.Fatal(err)
	}
	if got := set.Status.LastAction.User; got != strings.Repeat("é", 128) {
		t.Errorf("the user is %q", got)
	}
}
