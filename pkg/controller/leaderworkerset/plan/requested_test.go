// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// request requests a restart of groups, or of all.
func request(f *fixture, groups ...int32) {
	f.Set.Status.Restart = &leaderworkersetv1.RequestedRestart{
		RequestTime: metav1.NewMicroTime(f.Now.Add(500 * time.Millisecond)), All: len(groups) == 0, Groups: groups,
	}
	f.later(time.Second)
}

func TestRequestOfGroups(t *testing.T) {
	f := newFixture(t, 5, 2)
	f.stabilize()
	request(f, 1, 3, 9)
	p := f.pass()
	if len(p.DeleteLeaders) > 0 {
		t.Fatalf("leaders are deleted before they are stored: %v", deleted(p))
	}
	if diff := cmp.Diff([]types.UID{"s-1/1", "s-3/1"}, f.Set.Status.Restart.Leaders); diff != "" || !f.Set.Status.Restart.Found {
		t.Fatalf("found %t, leaders (-want +got):\n%s", f.Set.Status.Restart.Found, diff)
	}
	p = f.pass()
	if diff := cmp.Diff([]string{"s-3", "s-1"}, deleted(p)); diff != "" {
		t.Fatal("leaders to delete (-want +got):\n" + diff)
	}
	want := Event{Type: "Normal", Reason: "RestartRequested", Action: "Delete", Note: "Deleted leader pod s-3 to recreate group 3 on request", Related: "s-3"}
	if diff := cmp.Diff(want, *p.DeleteLeaders[0].Event); diff != "" {
		t.Error("event (-want +got):\n" + diff)
	}
	entry := leaderworkersetv1.GroupStatus{Index: 3, LastRestartTime: &f.Now, Incomplete: true}
	if diff := cmp.Diff(entry, f.status(3)); diff != "" {
		t.Error("entry (-want +got):\n" + diff)
	}

	f.leader(1).Deleting, f.leader(3).Deleting = true, true
	if p := f.stabilize(); len(p.DeleteLeaders) > 0 || f.Set.Status.Restart == nil {
		t.Fatalf("deleted %v, restart %v; want nothing deleted, and the restart until the leaders are gone", deleted(p), f.Set.Status.Restart)
	}
	f.replace(1)
	f.stabilize()
	if f.Set.Status.Restart == nil {
		t.Fatal("the restart ended before its last leader was gone")
	}
	f.replace(3)
	if p := f.stabilize(); len(p.DeleteLeaders) > 0 || f.Set.Status.Restart != nil {
		t.Fatalf("deleted %v, restart %v; want the end", deleted(p), f.Set.Status.Restart)
	}
}

// TestRequestOfAll restarts all groups, never more at a time than may be unavailable.
func TestRequestOfAll(t *testing.T) {
	for name, c := range map[string]struct {
		unavailable intstr.IntOrString
		want        int
	}{
		"1": {intstr.FromInt32(1), 1}, "2": {intstr.FromInt32(2), 2}, "0, with a surge": {intstr.FromInt32(0), 1}, "more than there are": {intstr.FromInt32(10), 5},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 5, 2)
			f.Set.Spec.RolloutStrategy.RollingUpdateConfiguration = &leaderworkersetv1.RollingUpdateConfiguration{
				MaxUnavailable: &c.unavailable, MaxSurge: ptr.To(intstr.FromInt32(1)),
			}
			f.Set.Spec.Paused = ptr.To(true) // stops rolling updates only
			f.stabilize()
			request(f)
			f.pass()
			restarts := map[string]int{}
			for range 30 {
				p := f.pass()
				if n := len(p.DeleteLeaders); n > c.want {
					t.Fatalf("%d leaders are deleted at a time, want at most %d", n, c.want)
				}
				for _, d := range p.DeleteLeaders {
					restarts[d.Name]++
					for i := range f.Leaders {
						if f.Leaders[i].UID == d.UID {
							f.Leaders[i].Deleting = true
						}
					}
				}
				if again := f.stabilize(); len(again.DeleteLeaders) > 0 {
					t.Fatalf("%v are deleted while other groups are not ready", deleted(again))
				}
				for i := range int32(5) {
					if f.leader(i).Deleting {
						f.replace(i)
						f.leader(i).Ready = false
						f.stabilize()
						f.leader(i).Ready = true
					}
				}
			}
			if f.Set.Status.Restart != nil || len(restarts) != 5 {
				t.Fatalf("restarts %v, status.restart %v; want each group once, and the end", restarts, f.Set.Status.Restart)
			}
			for name, n := range restarts {
				if n != 1 {
					t.Errorf("%s was deleted %d times", name, n)
				}
			}
		})
	}
}

// TestRequestOfAllWithGroupsDown restarts groups that are not ready at once, and no other while they are not.
func TestRequestOfAllWithGroupsDown(t *testing.T) {
	f := newFixture(t, 5, 2)
	f.stabilize()
	f.leader(1).Ready, f.workers(3).Ready = false, false
	request(f)
	f.pass()
	if diff := cmp.Diff([]string{"s-3", "s-1"}, deleted(f.pass())); diff != "" {
		t.Error("leaders to delete (-want +got):\n" + diff)
	}
}

// TestRequestOfAllWhileGroupsGo does not take a group above the replicas, which is about to go, for one that is available.
func TestRequestOfAllWhileGroupsGo(t *testing.T) {
	f := newFixture(t, 4, 2)
	f.stabilize()
	f.Set.Spec.Replicas, f.Leader.Spec.Replicas = ptr.To[int32](3), ptr.To[int32](3)
	f.leader(0).Ready = false
	request(f)
	f.pass()
	if diff := cmp.Diff([]string{"s-0"}, deleted(f.pass())); diff != "" {
		t.Error("leaders to delete (-want +got):\n" + diff)
	}
}

func TestRequestEnds(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"no such group": func(f *fixture) { request(f, 7) },
		"scaled down": func(f *fixture) {
			request(f, 4)
			f.pass()
			f.Leaders, f.Set.Spec.Replicas = f.Leaders[:4], ptr.To[int32](4)
		},
		"no groups": func(f *fixture) {
			f.Leaders, f.Observed.Workers, f.Set.Spec.Replicas = nil, nil, ptr.To[int32](0)
			request(f)
		},
		"nothing named":   func(f *fixture) { request(f, 0); f.Set.Status.Restart.Groups = nil },
		"rolled meantime": func(f *fixture) { request(f, 2); f.pass(); f.replace(2) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 5, 2)
			f.stabilize()
			change(f)
			if p := f.stabilize(); len(p.DeleteLeaders) > 0 || f.Set.Status.Restart != nil {
				t.Errorf("deleted %v, restart %v; want nothing", deleted(p), f.Set.Status.Restart)
			}
		})
	}
}

// TestRequestDoesNotCompareClocks has the clocks of the two API servers differ: that of pods is ahead, so that all seem
// to be younger than the request. A request that a former release has stored, and whose leaders are not found, is
// carried out in the same way.
func TestRequestDoesNotCompareClocks(t *testing.T) {
	for name, groups := range map[string][]int32{"of all": nil, "of groups": {0, 2}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 3, 1)
			f.stabilize()
			for i := range f.Leaders {
				f.Leaders[i].Created = metav1.NewTime(f.Now.Add(10 * time.Minute))
			}
			request(f, groups...)
			f.pass()
			if r := f.Set.Status.Restart; r == nil || !r.Found || !slices.Contains(r.Leaders, "s-0/1") || !slices.Contains(r.Leaders, "s-2/1") {
				t.Fatalf("restart %+v, want one with the leaders", r)
			}
			if p := f.pass(); len(p.DeleteLeaders) == 0 {
				t.Error("no leader is deleted")
			}
		})
	}
}

// TestRequestWaitsForTheStatefulSet requests a restart when the cache does not show the StatefulSet of the leaders: it
// does not end before their pods are known.
func TestRequestWaitsForTheStatefulSet(t *testing.T) {
	f := newFixture(t, 3, 1)
	f.stabilize()
	leader, pods := f.Leader, f.Leaders
	f.Leader, f.Leaders = nil, nil
	request(f)
	f.stabilize()
	if r := f.Set.Status.Restart; r == nil || r.Found {
		t.Fatalf("restart %+v, want one that has not found the leaders", r)
	}
	f.Leader, f.Leaders = leader, pods
	f.pass()
	if r := f.Set.Status.Restart; r == nil || !r.Found || len(r.Leaders) != 3 {
		t.Fatalf("restart %+v, want one with the leaders", r)
	}
}

// TestRequestBesideFailure has a group fail while others are restarted on request: each deletion is reported for what it is.
func TestRequestBesideFailure(t *testing.T) {
	f := newFixture(t, 4, 2)
	f.stabilize()
	request(f, 1, 2)
	f.pass()
	restarted(f.leader(3))
	restarted(f.leader(1))
	f.leader(1).Ready = false
	got := map[string]string{}
	for range 2 { // the second time, the API server has refused the deletions
		for _, d := range f.stabilize().DeleteLeaders {
			got[d.Name] += d.Event.Reason + " "
		}
	}
	want := map[string]string{"s-1": "RecreateGroup RecreateGroup ", "s-2": "RestartRequested RestartRequested ", "s-3": "RecreateGroup RecreateGroup "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("reasons (-want +got):\n" + diff)
	}
	if f.status(1).Restarts != 1 || f.status(2).Restarts != 0 || f.status(3).Restarts != 1 {
		t.Errorf("entries %+v, want a restart of the groups 1 and 3", f.Set.Status.Groups)
	}
}

// TestSecondRequest adds a group to a restart that is underway: the first group is not restarted again.
func TestSecondRequest(t *testing.T) {
	f := newFixture(t, 3, 1)
	f.stabilize()
	request(f, 1)
	f.pass()
	f.leader(1).Deleting = true
	f.stabilize()
	f.Set.Status.Restart.Groups, f.Set.Status.Restart.Found = []int32{2}, false
	f.Set.Status.Restart.RequestTime = metav1.NewMicroTime(f.Now.Time)
	f.later(time.Minute)
	f.pass()
	if diff := cmp.Diff([]types.UID{"s-1/1", "s-2/1"}, f.Set.Status.Restart.Leaders); diff != "" {
		t.Error("leaders (-want +got):\n" + diff)
	}
	f.replace(1)
	if diff := cmp.Diff([]string{"s-2"}, deleted(f.stabilize())); diff != "" {
		t.Error("leaders to delete (-want +got):\n" + diff)
	}
}
