// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestHandle creates Services with the label only if nothing is in the way.
func TestHandle(t *testing.T) {
	next := newJobSet("next", "controller", 1)
	for name, tc := range map[string]struct {
		config func(*Config)
		others []*jobsetv1alpha2.JobSet
		// fresh means that no slice with addresses was stored yet.
		fresh bool
		set   *jobsetv1alpha2.JobSet
		want  bool
	}{
		"a set that asks":                       {set: next, want: true},
		"a set that asks by default":            {config: func(c *Config) { c.Mode = "controller" }, set: newJobSet("next", "", 1), want: true},
		"a set that does not ask":               {set: newJobSet("next", "cluster", 1)},
		"a set of another controller":           {set: newJobSet("next", "controller", 1, func(js *jobsetv1alpha2.JobSet) { js.Spec.ManagedBy = new(string) })},
		"a set that is being deleted":           {set: newJobSet("next", "controller", 1, beingDeleted)},
		"a set that shares its Service":         {set: newJobSet("next", "controller", 1, func(js *jobsetv1alpha2.JobSet) { js.Spec.Network.Subdomain = "js" })},
		"a set that is known and asks":          {others: one(next), set: next, want: true},
		"a large set in auto that starts":       {set: newJobSet("next", "auto", 100), want: true},
		"a large set in auto by default":        {config: func(c *Config) { c.Mode = "auto" }, set: newJobSet("next", "", 100), want: true},
		"a large set in auto that runs":         {set: newJobSet("next", "auto", many, runs...)},
		"a large set in auto that is suspended": {set: newJobSet("next", "auto", 100, suspended)},
		"a small set in auto that starts":       {set: newJobSet("next", "auto", 99)},
		"before any slice has been stored":      {fresh: true, set: next},
		"a canary record that does not resolve": {config: func(c *Config) { c.Canary = &Canary{Namespace: "system", Resolver: resolver(nil)} }, set: next},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handle := &Handle{}
				change := func(c *Config) {
					c.Handle = handle
					if tc.config != nil {
						tc.config(c)
					}
				}
				if handle.Serves(tc.set) {
					t.Error("serves without a controller")
				}
				r := newRig(t, change, append(tc.others, newJobSet("js", "controller", 1)), newService("js"))
				if !tc.fresh {
					r.create(podOf("js", 0, true))
					r.pass(time.Second)
				}
				handle.Serves(tc.set) // asks for the watches, in case no caller needs them
				r.pass(time.Second)
				if got := handle.Serves(tc.set); got != tc.want {
					t.Errorf("serves: %t, want %t", got, tc.want)
				}
			})
		})
	}
}

// TestHandleEnds disconnects the handle when the controller stops.
func TestHandleEnds(t *testing.T) {
	handle := &Handle{}
	synctest.Test(t, func(t *testing.T) {
		newRig(t, func(c *Config) { c.Handle = handle }, one(newJobSet("js", "controller", 1)), newService("js"), podOf("js", 0, true))
		if !handle.Serves(newJobSet("next", "controller", 1)) {
			t.Error("does not serve a set that asks")
		}
	})
	if handle.Serves(newJobSet("next", "controller", 1)) {
		t.Error("serves although the controller has stopped")
	}
}

// TestServicesGivenBack gives Services back at once that were created with the label and are not to have it, while no other is taken.
func TestServicesGivenBack(t *testing.T) {
	shares := func(js *jobsetv1alpha2.JobSet) { js.Spec.Network.Subdomain = "js" }
	for name, tc := range map[string]struct {
		config func(*Config)
		sets   []*jobsetv1alpha2.JobSet
		want   string
	}{
		"a set that does not ask":                   {sets: one(newJobSet("js", "cluster", 1))},
		"a controller whose default is the cluster": {sets: one(newJobSet("js", "", 1))},
		"another set that uses the Service": {
			sets: []*jobsetv1alpha2.JobSet{newJobSet("js", "controller", 1), newJobSet("other", "controller", 1, shares)}, want: "other JobSets use the Service js too",
		},
		"a canary record that resolves no more": {
			config: func(c *Config) {
				c.Canary = &Canary{Namespace: "system", Resolver: resolver(nil), why: canaryNotResolved("it does not resolve"), failures: canaryFailures}
			},
			sets: one(newJobSet("js", "controller", 1)), want: "it does not resolve",
		},
		"slices that are refused": {
			config: func(c *Config) {
				c.Kube.(*fake.Clientset).PrependReactor("create", "endpointslices", func(clientgotesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", nil)
				})
			},
			sets: one(newJobSet("js", "controller", 1)), want: "EndpointSlices of the controller are refused; allow them, or annotate the JobSet with jobset-apiserver.io/service-endpoints=cluster: creating an endpointslice of service ns/js: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tc.config, tc.sets, podOf("js", 0, true))
				r.createService("js")
				r.pass(2 * time.Second)
				if all := strings.Join(r.writes(), " "); !strings.Contains(all, patchLeave) {
					t.Errorf("the Service is still taken: %s", all)
				}
				if got := r.event(); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
					t.Errorf("event %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// TestServiceOfAnEarlierController serves a Service that an earlier controller has created and no slice yet, until
// names have not resolved several times in a row.
func TestServiceOfAnEarlierController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		canary := &Canary{Namespace: "system", Resolver: resolver(nil)}
		r := newRig(t, func(c *Config) { c.Canary = canary }, one(newJobSet("js", "controller", 1)), newService("js", taken), podOf("js", 0, true))
		r.pass(time.Second)
		if got := r.listed(); len(got) != 1 {
			t.Errorf("addresses are %v, want one", got)
		}
		if all := strings.Join(r.writes(), " "); strings.Contains(all, patchLeave) {
			t.Errorf("the Service is given back before the record was looked up: %s", all)
		}
		r.pass(canaryTimeout + time.Second)
		if all := strings.Join(r.writes(), " "); strings.Contains(all, patchLeave) {
			t.Errorf("the Service is given back after one failure: %s", all)
		}
		r.pass(canaryFailures * (canaryRetry + canaryTimeout))
		if all := strings.Join(r.writes(), " "); !strings.Contains(all, patchLeave) {
			t.Errorf("the Service is still taken although the record does not resolve: %s", all)
		}
	})
}

// TestServicesSharedLater gives a Service back when another set begins to use it.
func TestServicesSharedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "controller", 1)), podOf("js", 0, true))
		r.createService("js")
		r.pass(time.Second)
		r.writes()
		other := newJobSet("other", "", 1, func(js *jobsetv1alpha2.JobSet) { js.Spec.Network.Subdomain = "js" })
		if err := r.sets.Tracker().Add(other); err != nil {
			t.Fatal(err)
		}
		r.pass(2 * time.Second)
		if all := strings.Join(r.writes(), " "); !strings.Contains(all, patchLeave) {
			t.Errorf("the Service is still taken: %s", all)
		}
	})
}

// TestWatchesOfADefault watches pods and asks for the canary record before the first set comes, where all sets ask us.
func TestWatchesOfADefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		canary := &Canary{Namespace: "system", Resolver: resolver(func() []netip.Addr { return nil })}
		r := newRig(t, func(c *Config) { c.Canary, c.Mode = canary, "controller" }, nil)
		r.pass(10 * time.Minute)
		if r.c.demand.Current() == nil {
			t.Error("pods are not watched")
		}
		if _, reason, _ := canary.Resolves(); reason == "" {
			t.Error("the canary record was not looked up")
		}
	})
}
