// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/actions"
)

type turn = func(*leaderworkerset.LeaderWorkerSet, *batch.LeaderWorkerSetActionSpec, actions.Call) (*batch.LeaderWorkerSetActionStatus, error)

func pausedSet(set *leaderworkerset.LeaderWorkerSet) { set.Spec.Paused = ptr.To(true) }

func TestPauseAndResume(t *testing.T) {
	cases := map[string]struct {
		turn    turn
		set     *leaderworkerset.LeaderWorkerSet
		paused  bool
		action  leaderworkerset.Action
		message string
	}{
		"pause":  {actions.Pause, llm(), true, leaderworkerset.ActionPause, "rolling updates were paused"},
		"resume": {actions.Resume, llm(pausedSet), false, leaderworkerset.ActionResume, "rolling updates were resumed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := tc.set.DeepCopy()
			spec := &batch.LeaderWorkerSetActionSpec{Reason: "freeze", Preconditions: generation(3)}
			got, err := tc.turn(tc.set, spec, call())
			if err != nil {
				t.Fatal(err)
			}
			want.Spec.Paused = ptr.To(tc.paused)
			want.Status.LastAction = &leaderworkerset.LastAction{Action: tc.action, User: "alice", Reason: "freeze", Time: &stored}
			if diff := cmp.Diff(want, tc.set); diff != "" {
				t.Errorf("set (-want +got):\n%s", diff)
			}
			answer := &batch.LeaderWorkerSetActionStatus{UID: "uid-1", User: "alice", Time: &stored, Message: tc.message}
			if diff := cmp.Diff(answer, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}

			tc.set.Generation++ // what the strategy does
			again, err := tc.turn(tc.set, spec, later("bob", time.Minute))
			if err != nil {
				t.Fatalf("the request was repeated: %v", err)
			}
			if diff := cmp.Diff(answer, again); diff != "" {
				t.Errorf("answer to the repeated request (-want +got):\n%s", diff)
			}
			tc.set.Generation++ // a user edited the set
			if _, err := tc.turn(tc.set, spec, later("bob", time.Minute)); text(err) != prefix+"preconditions.generation is 3, but generation 5 is current" {
				t.Errorf("the error of a request that is out of date is %v", err)
			}
		})
	}
}

func TestTurnsWithoutEffect(t *testing.T) {
	cases := map[string]struct {
		turn turn
		set  *leaderworkerset.LeaderWorkerSet
		spec batch.LeaderWorkerSetActionSpec
		want string
		err  string
	}{
		"paused already":  {turn: actions.Pause, set: llm(pausedSet), want: "the LeaderWorkerSet is already paused; nothing changed"},
		"not paused":      {turn: actions.Resume, set: llm(), want: "the LeaderWorkerSet is not paused; nothing changed"},
		"another set":     {turn: actions.Pause, set: llm(), spec: batch.LeaderWorkerSetActionSpec{Preconditions: other()}, err: prefix + "preconditions.uid is uid-0, but the LeaderWorkerSet has the UID uid-1: it was deleted and recreated"},
		"deleted":         {turn: actions.Resume, set: llm(deleting), err: prefix + "the LeaderWorkerSet is being deleted; recreate it after it is gone"},
		"out of date":     {turn: actions.Resume, set: llm(), spec: batch.LeaderWorkerSetActionSpec{Preconditions: generation(2)}, err: prefix + "preconditions.generation is 2, but generation 3 is current"},
		"not so any more": {turn: actions.Pause, set: llm(pausedSet), spec: batch.LeaderWorkerSetActionSpec{Preconditions: generation(2)}, err: prefix + "preconditions.generation is 2, but generation 3 is current"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.set.DeepCopy()
			got, err := tc.turn(tc.set, &tc.spec, call())
			if text(err) != tc.err {
				t.Errorf("error %q, want %q", text(err), tc.err)
			}
			if err == nil && (got.Message != tc.want || got.Time != nil || got.User != "") {
				t.Errorf("answer %+v, want only the message %q", got, tc.want)
			}
			if diff := cmp.Diff(before, tc.set); diff != "" {
				t.Errorf("the set changed:\n%s", diff)
			}
		})
	}
}

func TestRecordEdit(t *testing.T) {
	for name, tc := range map[string]struct {
		prev, next *leaderworkerset.LeaderWorkerSet
		call       actions.Call
		want       *leaderworkerset.LastAction
	}{
		"paused":        {llm(), llm(pausedSet), call(), &leaderworkerset.LastAction{Action: leaderworkerset.ActionPause, User: "alice", Time: &stored}},
		"resumed":       {llm(pausedSet), llm(), call(), &leaderworkerset.LastAction{Action: leaderworkerset.ActionResume, User: "alice", Time: &stored}},
		"neither":       {llm(), llm(image("v4")), call(), nil},
		"by nobody":     {llm(), llm(pausedSet), actions.Call{Now: now}, nil},
		"while deleted": {llm(deleting), llm(deleting, pausedSet), call(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			actions.RecordEdit(tc.next, tc.prev, tc.call)
			if diff := cmp.Diff(tc.want, tc.next.Status.LastAction); diff != "" {
				t.Errorf("last action (-want +got):\n%s", diff)
			}
		})
	}
}
