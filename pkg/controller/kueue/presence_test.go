// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"cmp"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"
)

func TestPresence(t *testing.T) {
	for name, tc := range map[string]struct {
		// served is the version that discovery lists, and kind the only kind in it; empty means Workloads.
		served, kind string
		err          error
		want         Availability
		// asked is the number of requests, and kept how long the answer is used.
		asked int
		kept  time.Duration
	}{
		"served":                     {served: plan1beta2, want: Served, asked: 1, kept: presenceKept},
		"served in an older version": {served: "kueue.x-k8s.io/v1beta1", want: Served, asked: 2, kept: presenceKept},
		"other kinds of the group":   {served: plan1beta2, kind: "localqueues", want: Absent, asked: 2, kept: presenceKept},
		"absent":                     {want: Absent, asked: 2, kept: presenceKept},
		"discovery fails":            {err: away, want: Unknown, asked: 1, kept: unknownKept},
	} {
		t.Run(name, func(t *testing.T) {
			kube, asked := kubefake.NewClientset(), 0
			if tc.served != "" {
				kube.Resources = []*metav1.APIResourceList{{GroupVersion: tc.served, APIResources: []metav1.APIResource{{Name: cmp.Or(tc.kind, workloads.Resource)}}}}
			}
			kube.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
				asked++
				return tc.err != nil, nil, tc.err
			})
			now := testclock.NewFakePassiveClock(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
			p := NewPresence(kube, now)
			if asked != 0 {
				t.Error("asked before somebody wanted to know")
			}
			for range 3 {
				if got := p.Of(t.Context()); got != tc.want {
					t.Errorf("got %v, want %v", got, tc.want)
				}
			}
			now.SetTime(now.Now().Add(tc.kept - time.Second))
			p.Of(t.Context())
			if asked != tc.asked {
				t.Errorf("%d requests, want %d", asked, tc.asked)
			}
			now.SetTime(now.Now().Add(time.Second))
			if got := p.Of(t.Context()); got != tc.want || asked != 2*tc.asked {
				t.Errorf("later: got %v, want %v, with %d requests", got, tc.want, asked)
			}
		})
	}
}

const plan1beta2 = "kueue.x-k8s.io/v1beta2"

// TestPresenceAsksOnceForMany lets those wait that come while the first one asks.
func TestPresenceAsksOnceForMany(t *testing.T) {
	kube := kubefake.NewClientset()
	var mu sync.Mutex
	asked := 0
	kube.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return true, nil, absent
	})
	p := NewPresence(kube, testclock.NewFakePassiveClock(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)))
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if got := p.Of(t.Context()); got != Absent {
				t.Errorf("got %v", got)
			}
		})
	}
	group.Wait()
	if asked != len(presenceVersions) {
		t.Errorf("%d requests, want %d", asked, len(presenceVersions))
	}
}
