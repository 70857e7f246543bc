// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// minutes has another party do something ten times a second for five minutes, and returns how many writes begin with a text.
func (r *rig) minutes(text string, others func()) (n int) {
	for range 5 * 60 * 10 {
		r.pass(100 * time.Millisecond)
		others()
	}
	for _, write := range r.writes() {
		if strings.Contains(write, text) {
			n++
		}
	}
	return n
}

// TestSlicesDeletedByOthers deletes the slices of a set whenever they exist.
func TestSlicesDeletedByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, []*jobsetv1alpha2.JobSet{newJobSet("js", "controller", 1)}, newService("js"), podOf("js", 0, true))
		created := r.minutes("create ", func() {
			all, err := r.kube.DiscoveryV1().EndpointSlices("ns").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range all.Items {
				if err := r.kube.Tracker().Delete(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), "ns", all.Items[i].Name); err != nil {
					t.Fatal(err)
				}
			}
		})
		if created > 9 {
			t.Errorf("slices are created %d times in five minutes, want at most 9", created)
		}
		r.checkReported("another party deletes or changes EndpointSlices of the controller; ")
	})
}

// TestSlicesChangedByOthers empties the slices of a set whenever they have an address.
func TestSlicesChangedByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, []*jobsetv1alpha2.JobSet{newJobSet("js", "controller", 1)}, newService("js"), podOf("js", 0, true))
		slices := r.kube.DiscoveryV1().EndpointSlices("ns")
		version := 1_000_000
		updated := r.minutes("update ", func() {
			all, err := slices.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range all.Items {
				if len(all.Items[i].Endpoints) == 0 {
					continue
				}
				version++
				all.Items[i].Endpoints, all.Items[i].ResourceVersion = []discoveryv1.Endpoint{}, strconv.Itoa(version)
				if err := r.kube.Tracker().Update(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), &all.Items[i], "ns"); err != nil {
					t.Fatal(err)
				}
			}
		})
		if updated == 0 || updated > 9 {
			t.Errorf("slices are updated %d times in five minutes, want 1 to 9", updated)
		}
		r.checkReported("another party deletes or changes EndpointSlices of the controller; ")
	})
}

// TestSlicesOfEarlierControllersAreNotChanged shows a slice to a controller that has just started, and then a change of another client.
func TestSlicesOfEarlierControllersAreNotChanged(t *testing.T) {
	m, key := newMemory(), cache.NewObjectName("ns", "js")
	shown := func(version string) *discoveryv1.EndpointSlice {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-x", ResourceVersion: version}}
		if !m.foreign(key, slice, false) {
			t.Errorf("version %s counts as written by this controller", version)
		}
		m.wasChanged(key, slice.Name)
		return slice
	}
	first := shown("5")
	if m.isChanged(key, "js-x") {
		t.Error("a slice that a controller sees at its start counts as changed by another client")
	}
	m.saw(key, []*discoveryv1.EndpointSlice{first})
	shown("6")
	if !m.isChanged(key, "js-x") {
		t.Error("a slice that another client has changed does not count as changed")
	}
}

// TestSelectorChangedByOthers gives a Service its own selector back whenever it has another one.
func TestSelectorChangedByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, []*jobsetv1alpha2.JobSet{newJobSet("js", "controller", 1)}, newService("js"), podOf("js", 0, true))
		taken := r.minutes(`"jobset-apiserver.io/endpoints":"controller"`, func() {
			svc, err := r.kube.CoreV1().Services("ns").Get(t.Context(), "js", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !switched(svc) {
				return
			}
			delete(svc.Spec.Selector, jobsetv1alpha2.EndpointsKey)
			if _, err := r.kube.CoreV1().Services("ns").Update(t.Context(), svc, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		})
		if taken != 5 {
			t.Errorf("the selector is set %d times in five minutes, want 5", taken)
		}
		r.checkReported("another party changes the selector of the Service js; ")
	})
}

// checkReported checks that an event has a text.
func (r *rig) checkReported(text string) {
	r.Helper()
	var all []string
	for event := r.event(); event != ""; event = r.event() {
		if all = append(all, event); strings.Contains(event, text) {
			return
		}
	}
	r.Errorf("no event of %q has %q", all, text)
}
