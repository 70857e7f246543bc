// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// failAgain has a group fail and be recreated, and returns how long that took.
func failAgain(f *fixture, index int32) time.Duration {
	f.t.Helper()
	before := f.Now
	f.leader(index).Restarted, f.leader(index).Ready = true, false
	for range 10 {
		if p := f.stabilize(); len(p.DeleteLeaders) == 1 {
			f.replace(index)
			f.stabilize()
			return f.Now.Sub(before.Time)
		} else if p.RequeueAfter > 0 {
			f.later(p.RequeueAfter)
		}
	}
	f.t.Fatal("the group is not recreated")
	return 0
}

func TestLimit(t *testing.T) {
	f := newFixture(t, 2, 2)
	f.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](2)
	f.stabilize()
	if status, _ := f.condition("Failed"); status != "" {
		t.Fatalf("Failed is %s in a set that has not failed", status)
	}
	failAgain(f, 1)
	failAgain(f, 1)

	// The pod that is being deleted is the only sign of the failure, and soon gone.
	f.worker(1, 1).Deleting = true
	p := f.pass()
	f.worker(1, 1).Deleting = false
	note := "Group 1 has failed again after 2 restarts and is left as it is; maxGroupRestarts is 2"
	if len(p.Events) == 0 || p.Events[0].Note != note || p.Events[0].Type != "Warning" || p.Events[0].Reason != "MaxGroupRestartsExceeded" {
		t.Errorf("events %+v, want a warning %q", p.Events, note)
	}
	if p := f.stabilize(); len(p.DeleteLeaders) > 0 || len(p.Events) > 0 {
		t.Errorf("deleted %v, events %v; want nothing", deleted(p), p.Events)
	}
	expectFailed(f, metav1.ConditionTrue, "Group 1 (2 restarts) has failed again; maxGroupRestarts is 2")
	if got := f.status(1); !got.Failed || got.Restarts != 2 || got.FirstCause.Pod != "s-1-1" {
		t.Errorf("entry %+v, want one that is failed after 2 restarts because of s-1-1", got)
	}

	// Other groups still have their restarts.
	failAgain(f, 0)
	if got := f.status(0).Restarts; got != 1 {
		t.Errorf("group 0 has %d restarts, want 1", got)
	}

	f.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](3)
	if diff := cmp.Diff([]string{"s-1"}, deleted(f.stabilize())); diff != "" {
		t.Error("leaders to delete once the limit is raised (-want +got):\n" + diff)
	}
	expectFailed(f, metav1.ConditionFalse, "No group has used up maxGroupRestarts")
	f.replace(1)
	f.stabilize()
	if got := f.status(1); got.Failed || got.Restarts != 3 {
		t.Errorf("entry %+v, want 3 restarts and not failed", got)
	}
}

func expectFailed(f *fixture, want metav1.ConditionStatus, message string) {
	f.t.Helper()
	if status, got := f.condition("Failed"); status != want || got != message {
		f.t.Errorf("Failed is %s with the message %q, want %s with %q", status, got, want, message)
	}
}

// TestFailedGroupMayBeReady has the pods of a group that is left as it is become ready again. The conditions say both: Available is about
// pods, and Failed about restarts.
func TestFailedGroupMayBeReady(t *testing.T) {
	f := newFixture(t, 2, 2)
	f.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](0)
	f.stabilize()
	restarted(f.worker(0, 1))
	for _, ready := range []bool{false, true, false, true} {
		f.worker(0, 1).Ready, f.workers(0).Ready = ready, ready
		if p := f.stabilize(); len(p.DeleteLeaders) > 0 {
			t.Errorf("deleted %v, want nothing", deleted(p))
		}
		expectFailed(f, metav1.ConditionTrue, "Group 0 (0 restarts) has failed again; maxGroupRestarts is 0")
		want, groups := metav1.ConditionFalse, int32(1)
		if ready {
			want, groups = metav1.ConditionTrue, 2
		}
		if got, _ := f.condition("Available"); got != want || f.Set.Status.ReadyReplicas != groups {
			t.Errorf("pods are ready: %t; Available is %s with %d ready groups, want %s with %d", ready, got, f.Set.Status.ReadyReplicas, want, groups)
		}
		if phase, c := helper.Phase(f.Set); phase != helper.PhaseFailed || c.Type != "Failed" {
			t.Errorf("pods are ready: %t; the state is %s because of %v, want Failed", ready, phase, c)
		}
	}
}

// TestLimitEnds ends the failure of a group in each other way than a higher limit.
func TestLimitEnds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture)
		want   []string
	}{
		"no limit": {func(f *fixture) { f.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = nil }, []string{"s-0"}},
		"request": {func(f *fixture) {
			f.Set.Status.Restart = &leaderworkersetv1.RequestedRestart{RequestTime: metav1.NewMicroTime(f.Now.Time), Groups: []int32{0}}
		}, []string{"s-0"}},
		"leader deleted by somebody": {func(f *fixture) { f.leader(0).Deleting = true }, nil},
		"leader replaced":            {func(f *fixture) { f.replace(0) }, nil},
		"leader gone":                {func(f *fixture) { f.Leaders = f.Leaders[1:] }, nil},
		"policy None": {func(f *fixture) {
			f.Set.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyNone
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, 2)
			f.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](0)
			f.stabilize()
			restarted(f.leader(0))
			f.stabilize()
			expectFailed(f, metav1.ConditionTrue, "Group 0 (0 restarts) has failed again; maxGroupRestarts is 0")
			c.change(f)
			p := f.stabilize()
			if diff := cmp.Diff(c.want, deleted(p)); diff != "" {
				t.Error("leaders to delete (-want +got):\n" + diff)
			}
			if f.status(0).Failed {
				t.Error("the group is still failed")
			}
			expectFailed(f, metav1.ConditionFalse, "No group has used up maxGroupRestarts")
		})
	}
}

func TestMessageOfManyFailedGroups(t *testing.T) {
	for _, c := range []struct {
		groups int32
		want   string
	}{
		{2, "Group 0 (0 restarts) and group 1 (0 restarts) have failed again; maxGroupRestarts is 0"},
		{3, "Group 0 (0 restarts), group 1 (0 restarts) and group 2 (0 restarts) have failed again; maxGroupRestarts is 0"},
		{12, "Group 0 (0 restarts), group 1 (0 restarts), group 2 (0 restarts), group 3 (0 restarts), group 4 (0 restarts), group 5 (0 restarts), " +
			"group 6 (0 restarts), group 7 (0 restarts), group 8 (0 restarts), group 9 (0 restarts) and 2 more have failed again; maxGroupRestarts is 0"},
	} {
		f := newFixture(t, c.groups, 1)
		f.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](0)
		for i := range f.Leaders {
			restarted(&f.Leaders[i])
		}
		f.stabilize()
		expectFailed(f, metav1.ConditionTrue, c.want)
	}
}
