// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// TestTouches lists the seconds after the return of the server at which StatefulSets are touched.
func TestTouches(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture)
		want   []string
	}{
		"nothing is missing": {func(*fixture) {}, nil},
		"workers are missing": {
			func(f *fixture) { f.workers(1).Created = 1 }, []string{"2 s-1", "15 s-1", "35 s-1"},
		},
		"leaders are missing": {func(f *fixture) { f.Leader.Status.Replicas = 1 }, []string{"2 leader", "15 leader", "35 leader"}},
		"workers are deleted": {func(f *fixture) { f.workers(1).Created, f.workers(1).Deleting = 1, true }, nil},
		"group is deleted":    {func(f *fixture) { f.workers(1).Created, f.leader(1).Deleting = 1, true }, nil},
		"workers are new": {
			func(f *fixture) {
				f.workers(1).Created, f.workers(1).CreatedAt = 1, metav1.NewTime(f.Now.Add(20*time.Second))
			}, []string{"35 s-1"},
		},
		"leaders are new": {
			func(f *fixture) {
				f.Leader.Status.Replicas, f.Leader.Status.ObservedGeneration, f.Leader.CreationTimestamp = 1, 0, metav1.NewTime(f.Now.Add(2*time.Second))
			},
			[]string{"15 leader", "35 leader"},
		},
		"workers are dated by a clock that is ahead": {
			func(f *fixture) {
				f.workers(1).Created, f.workers(1).CreatedAt, f.workers(1).Observed = 1, metav1.NewTime(f.Now.Add(5*time.Minute)), true
			}, []string{"2 s-1", "15 s-1", "35 s-1"},
		},
		"leaders are dated by a clock that is ahead": {
			func(f *fixture) {
				f.Leader.Status.Replicas, f.Leader.Status.ObservedGeneration = 1, 1
				f.Leader.CreationTimestamp = metav1.NewTime(f.Now.Add(5 * time.Minute))
			},
			[]string{"2 leader", "15 leader", "35 leader"},
		},
		"never interrupted":    {func(f *fixture) { f.workers(1).Created = 1; f.ServedSince = time.Time{} }, nil},
		"returned an hour ago": {func(f *fixture) { f.workers(1).Created = 1; f.ServedSince = f.ServedSince.Add(-time.Hour) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 3, 3)
			f.ServedSince = f.Now.Time
			f.stabilize()
			c.change(f)
			var got []string
			for second := range 200 {
				p := f.stabilize()
				for _, n := range p.TouchWorkers {
					got = append(got, fmt.Sprintf("%d %s", second, n.Name))
					f.workers(1).Touched = f.Now.Time
				}
				if p.TouchLeader {
					got = append(got, fmt.Sprintf("%d leader", second))
					f.Leader.Annotations = hostplan.Merged(f.Leader.Annotations, map[string]string{TouchedKey: f.Now.UTC().Format(time.RFC3339)})
				}
				f.later(time.Second)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("touches (-want +got):\n" + diff)
			}
		})
	}
}

// TestTouchesAreDue has a decision made at each of the times.
func TestTouchesAreDue(t *testing.T) {
	f := newFixture(t, 2, 3)
	f.stabilize()
	f.ServedSince = f.Now.Add(-500 * time.Millisecond)
	f.workers(1).Created = 1
	var got []time.Duration
	for range 4 {
		p := f.stabilize()
		got = append(got, p.RequeueAfter)
		if len(p.TouchWorkers) > 0 {
			f.workers(1).Touched = f.Now.Time
		}
		f.later(p.RequeueAfter.Truncate(time.Second) + time.Second)
	}
	want := []time.Duration{1500 * time.Millisecond, 12500 * time.Millisecond, 19500 * time.Millisecond, 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("next decisions (-want +got):\n" + diff)
	}
}

func TestTouchesAreBounded(t *testing.T) {
	f := newFixture(t, 250, 2)
	f.stabilize()
	f.ServedSince = f.Now.Add(-5 * time.Second)
	for i := range f.Workers {
		f.Workers[i].Created = 0
	}
	p := f.stabilize()
	if len(p.TouchWorkers) != maxGroupWrites || !p.More {
		t.Errorf("%d touches, more: %t; want %d, true", len(p.TouchWorkers), p.More, maxGroupWrites)
	}
	if diff := cmp.Diff(Touch{Ref: f.workers(0).Ref, ResourceVersion: "7"}, p.TouchWorkers[0]); diff != "" {
		t.Error("touch (-want +got):\n" + diff)
	}
}
