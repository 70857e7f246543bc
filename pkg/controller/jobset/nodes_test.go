// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestNodesAreCounted(t *testing.T) {
	page := func(rest *int64, next string) *corev1.NodeList {
		return &corev1.NodeList{ListMeta: metav1.ListMeta{RemainingItemCount: rest, Continue: next}, Items: make([]corev1.Node, 1)}
	}
	for name, tc := range map[string]struct {
		page *corev1.NodeList
		err  error
		want int
	}{
		"one node":                     {page: page(nil, ""), want: 1},
		"many nodes":                   {page: page(ptr.To[int64](4999), "next"), want: 5000},
		"more than the API says":       {page: page(nil, "next")},
		"no permission":                {err: errors.New("nodes is forbidden")},
		"a cluster that has lost them": {page: &corev1.NodeList{}},
	} {
		t.Run(name, func(t *testing.T) {
			kube, asked := fake.NewClientset(), 0
			kube.PrependReactor("list", "nodes", func(clientgotesting.Action) (bool, runtime.Object, error) {
				asked++
				if tc.err != nil {
					return true, nil, tc.err
				}
				return true, tc.page, nil
			})
			now := testclock.NewFakePassiveClock(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
			c := newNodeCounter(kube, now)
			for range 3 {
				diff(t, "nodes", tc.want, c.Of(t.Context()))
			}
			diff(t, "requests", 1, asked)
			now.SetTime(now.Now().Add(nodesKept))
			diff(t, "nodes after some time", tc.want, c.Of(t.Context()))
			diff(t, "requests after some time", 2, asked)
		})
	}
}

// TestNodesAreCountedWithoutLock has the API take its time. Whoever knows a number goes on with it, and who knows none
// waits for the one answer.
func TestNodesAreCountedWithoutLock(t *testing.T) {
	kube, now := fake.NewClientset(), testclock.NewFakePassiveClock(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	c := newNodeCounter(kube, now)
	requests, answers := make(chan struct{}, 8), make(chan int64)
	kube.PrependReactor("list", "nodes", func(clientgotesting.Action) (bool, runtime.Object, error) {
		requests <- struct{}{}
		rest := <-answers
		return true, &corev1.NodeList{ListMeta: metav1.ListMeta{RemainingItemCount: &rest, Continue: "next"}, Items: make([]corev1.Node, 1)}, nil
	})
	counted := make(chan int, 8)
	begin := func() { go func() { counted <- c.Of(t.Context()) }() }
	begin()
	<-requests
	begin() // waits, or finds the answer
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	diff(t, "nodes for a caller who does not wait", 0, c.Of(gone))
	answers <- 99
	diff(t, "nodes", 100, <-counted)
	diff(t, "nodes for who waited", 100, <-counted)

	now.SetTime(now.Now().Add(nodesKept))
	begin()
	<-requests
	for range 3 {
		diff(t, "nodes while the API is asked again", 100, c.Of(t.Context()))
	}
	answers <- 199
	diff(t, "nodes for who asked again", 200, <-counted)
	diff(t, "nodes after that", 200, c.Of(t.Context()))
	diff(t, "requests that nobody waited for", 0, len(requests))
}

// TestJobsWithoutRoomBecauseOfAvoidedNodes reads the words of the scheduler, for a set that avoids nodes only.
func TestJobsWithoutRoomBecauseOfAvoidedNodes(t *testing.T) {
	js := newSet()
	js.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 2, AvoidedNodes: []jobsetv1alpha2.AvoidedNode{{Name: "n1", Attempt: 1}}}}
	for name, want := range map[string]sets.Set[types.UID]{"js": sets.New[types.UID]("u1"), "none": nil} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, js)
			for _, pod := range []*corev1.Pod{
				podOfJob("js-w-0-0-abcde", "u0", unscheduled("Unschedulable", "0/20 nodes are available: 20 Insufficient cpu.")),
				podOfJob("js-w-1-0-abcde", "u1", unscheduled("Unschedulable", "0/20 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 19 Insufficient cpu.")),
			} {
				if err := r.caches.pods.GetIndexer().Add(watched(t, pod)); err != nil {
					t.Fatal(err)
				}
			}
			stored := js.DeepCopy()
			if name == "none" {
				stored.Status.Attempts = nil
			}
			if err := r.caches.jobSets.GetIndexer().Add(stored); err != nil {
				t.Fatal(err)
			}
			obs, _, _, err := r.Decided(t.Context(), cache.NewObjectName("ns", "js"))
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "Jobs", want, obs.ShutOut.Value())
		})
	}
}
