// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// TestEditsAreRecordedAsActions changes spec.suspend in each state, and compares the status with that after the action.
func TestEditsAreRecordedAsActions(t *testing.T) {
	for state, change := range states {
		t.Run(state, func(t *testing.T) {
			prev := train(change)
			before := prev.DeepCopy()
			next := prev.DeepCopy()
			next.Status = prev.Status // as the strategy leaves it
			next.Spec.Suspend = ptr.To(!ptr.Deref(prev.Spec.Suspend, false))
			actions.RecordEdit(next, prev, call())
			if diff := cmp.Diff(before, prev); diff != "" {
				t.Errorf("the previous set changed (-before +after):\n%s", diff)
			}

			acted := before.DeepCopy()
			act := actions.Resume
			if *next.Spec.Suspend {
				act = actions.Suspend
			}
			if _, err := act(acted, &batch.JobSetActionSpec{}, call()); err != nil {
				acted = before // what the action refuses is not recorded
			}
			if diff := cmp.Diff(acted.Status, next.Status); diff != "" {
				t.Errorf("status (-after the action +after the edit):\n%s", diff)
			}
		})
	}
}

// TestEditsRecordCheckpoints changes the annotation in which a job reports its step.
func TestEditsRecordCheckpoints(t *testing.T) {
	const key = jobset.CheckpointStepKey
	stamp := &jobset.Checkpoint{Step: 7, Time: stored, GoodMilliseconds: readyBefore}
	cases := map[string]struct {
		state      string
		prev, next map[string]string
		suspend    bool
		want       *jobset.Checkpoint
	}{
		"first report":                {next: map[string]string{key: "7"}, want: stamp},
		"next report":                 {prev: map[string]string{key: "6"}, next: map[string]string{key: "7"}, want: stamp},
		"the same value again":        {prev: map[string]string{key: "7"}, next: map[string]string{key: "7", "other": "x"}},
		"removed":                     {prev: map[string]string{key: "7"}},
		"not a step":                  {next: map[string]string{key: "seven"}},
		"before the set is suspended": {next: map[string]string{key: "7"}, suspend: true, want: stamp},
		"of a suspended set":          {state: "suspended", next: map[string]string{key: "7"}},
		"of a completed set":          {state: "completed", next: map[string]string{key: "7"}},
		"of a set that has not begun": {state: "new", next: map[string]string{key: "7"}},
		"of a set in a queue":         {state: "queued", next: map[string]string{key: "7"}, want: stamp},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.state == "" {
				tc.state = "running"
			}
			prev := train(states[tc.state])
			prev.Annotations = tc.prev
			next := prev.DeepCopy()
			next.Status, next.Annotations = prev.Status, tc.next
			if tc.suspend {
				next.Spec.Suspend = ptr.To(true)
			}
			before := prev.DeepCopy()
			actions.RecordEdit(next, prev, call())
			if diff := cmp.Diff(before, prev); diff != "" {
				t.Errorf("the previous set changed (-before +after):\n%s", diff)
			}
			var got *jobset.Checkpoint
			if current := actions.Current(&next.Status); current != nil {
				got = current.Checkpoint
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("checkpoint (-want +got):\n%s", diff)
			}
			if tc.suspend && (next.Status.Attempts[0].EndUser != "alice" || !next.Status.Attempts[0].EndTime.Equal(stored)) {
				t.Errorf("the attempt is %+v", next.Status.Attempts[0])
			}
		})
	}
}

func TestOtherEditsRecordNothing(t *testing.T) {
	cases := map[string]struct{ prev, next *bool }{
		"nothing": {nil, nil}, "false set": {nil, ptr.To(false)}, "false removed": {ptr.To(false), nil}, "it stays suspended": {ptr.To(true), ptr.To(true)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			prev := train(func(js *jobset.JobSet) { js.Spec.Suspend = tc.prev })
			next := prev.DeepCopy()
			next.Spec.Suspend = tc.next
			actions.RecordEdit(next, prev, call())
			if diff := cmp.Diff(prev.Status, next.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEditsOfQueuedSetsRecordNoUser: a set that joins or leaves a queue with the same edit is not recorded either.
func TestEditsOfQueuedSetsRecordNoUser(t *testing.T) {
	for name, change := range map[string]func(prev, next *jobset.JobSet){
		"joins a queue":  func(_, next *jobset.JobSet) { queued(next) },
		"leaves a queue": func(prev, _ *jobset.JobSet) { queued(prev) },
		"is owned":       func(prev, next *jobset.JobSet) { owned(prev); owned(next) },
	} {
		t.Run(name, func(t *testing.T) {
			prev := train()
			next := prev.DeepCopy()
			next.Spec.Suspend = ptr.To(true)
			change(prev, next)
			actions.RecordEdit(next, prev, call())
			if diff := cmp.Diff(prev.Status, next.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}
