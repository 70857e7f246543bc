// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFailedWritesAreReported has writes fail of which nothing else is said.
func TestFailedWritesAreReported(t *testing.T) {
	failed := []FailedWrite{
		{Action: ActionCreate, Kind: "podgroup", Object: "podgroup s-0", Error: "forbidden"},
		{Action: ActionUpdate, Kind: "statefulset", Object: "statefulset s-0", Error: "forbidden"},
		{Action: ActionDelete, Kind: "leader pod", Object: "leader pod s-0", Error: "forbidden"},
	}
	var got []string
	for _, e := range append(Finish(newFixture(t, 1, 1).Observed, Plan{}, Results{Failed: failed}).Others, StatusFailure(errors.New("forbidden"))) {
		got = append(got, e.Type+" "+e.Reason+" "+e.Action+" "+e.Note)
	}
	want := []string{
		"Warning FailedCreate Create Failed to create podgroup s-0: forbidden",
		"Warning FailedUpdate Update Failed to update statefulset s-0: forbidden",
		"Warning FailedDelete Delete Failed to delete leader pod s-0: forbidden",
		"Warning FailedUpdate Update Failed to update the status: forbidden",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("events (-want +got):\n" + diff)
	}
}

// TestRefusedRestartIsNotDated refuses to delete the leader pod of a requested restart: tries write nothing.
func TestRefusedRestartIsNotDated(t *testing.T) {
	f := newFixture(t, 3, 2)
	f.stabilize()
	request(f, 1)
	f.pass()
	for range 3 {
		p := Decide(f.Observed)
		if len(p.DeleteLeaders) != 1 {
			t.Fatalf("leaders to delete: %v", deleted(p))
		}
		if out := Finish(f.Observed, p, Results{KeptLeaders: []int{0}}); out.Status != nil {
			t.Errorf("status %v, want none", out.Status)
		}
		f.later(time.Minute)
	}
	out := Finish(f.Observed, Decide(f.Observed), Results{DeletedLeaders: []int{0}})
	if out.Status == nil || len(out.Status.Groups) != 1 || !out.Status.Groups[0].LastRestartTime.Equal(&f.Now) {
		t.Errorf("status %v, want the time of the restart", out.Status)
	}
}
