// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestAutoInSilence leaves addresses to the cluster, without an event or a condition, if something is in the way of writing them.
func TestAutoInSilence(t *testing.T) {
	refuse := func(verb, resource string, err error) func(*Config) {
		return func(c *Config) {
			c.Kube.(*fake.Clientset).PrependReactor(verb, resource, func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		}
	}
	quota := apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", fmt.Errorf("exceeded quota: q"))
	missing := apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", fmt.Errorf(`User "x" cannot create resource "endpointslices"`))
	shares := func(js *jobsetv1alpha2.JobSet) { js.Spec.Network.Subdomain = "js" }
	for name, tc := range map[string]struct {
		config func(*Config)
		others []*jobsetv1alpha2.JobSet
		svc    func(*corev1.Service)
	}{
		"slices that are refused":           {config: refuse("create", "endpointslices", quota)},
		"a missing permission":              {config: refuse("create", "endpointslices", missing)},
		"a selector that is refused":        {config: refuse("patch", "services", quota)},
		"a record that does not resolve":    {config: func(c *Config) { c.Canary = &Canary{Namespace: "system", Resolver: resolver(nil)} }},
		"another set that uses the Service": {others: one(newJobSet("other", "cluster", 1, shares))},
		"a Service of another party":        {svc: func(s *corev1.Service) { s.OwnerReferences = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, handle := newService("js"), &Handle{}
				if tc.svc != nil {
					tc.svc(svc)
				}
				js := newJobSet("js", "auto", many, starts...)
				r := newRig(t, func(c *Config) {
					c.Handle = handle
					if tc.config != nil {
						tc.config(c)
					}
				}, append(tc.others, js), objectsOf(svc, true)...)
				r.pass(10 * time.Minute)
				if event := r.event(); event != "" {
					t.Errorf("event %q", event)
				}
				if reason, _, known := handle.Refusal(js); reason != "" || !known {
					t.Errorf("refusal %q, known: %t", reason, known)
				}
				if got := r.listed(); len(got) > 0 {
					t.Errorf("%d addresses are left", len(got))
				}
				if svc, err := r.kube.CoreV1().Services("ns").Get(t.Context(), "js", metav1.GetOptions{}); err != nil || switched(svc) {
					t.Errorf("the selector is %v, %v", svc.Spec.Selector, err)
				}
			})
		})
	}
}

// TestAutoThatIsAskedFor reports a refusal once the set asks for the mode controller, and no longer reports it in the mode auto.
func TestAutoThatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handle := &Handle{}
		foreign := newService("js", func(s *corev1.Service) { s.OwnerReferences = nil })
		r := newRig(t, func(c *Config) { c.Handle = handle }, one(newJobSet("js", "auto", many, starts...)), objectsOf(foreign, true)...)
		for i := range 2 {
			asking := newJobSet("js", "controller", many, starts...)
			r.updateSet(asking, fmt.Sprint(r.version.Add(1)))
			r.pass(time.Second)
			if event := r.event(); !strings.Contains(event, "is not the controller of the Service") {
				t.Errorf("event %d: %q", i, event)
			}
			if reason, _, _ := handle.Refusal(asking); reason != ReasonServiceNotOwned {
				t.Errorf("refusal %q", reason)
			}
			r.becomes(starts...)
			if event := r.event(); event != "" {
				t.Errorf("event %q", event)
			}
		}
	})
}

// TestAutoThatCannotGiveBack reports that a Service stays with the controller, which its set does not expect at rest.
func TestAutoThatCannotGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "auto", many, starts...)), objectsOf(newService("js"), true)...)
		r.kube.PrependReactor("patch", "services", func(clientgotesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("services"), "", fmt.Errorf("exceeded quota: q"))
		})
		r.becomes(runs...)
		r.pass(time.Minute)
		if event := r.event(); !strings.Contains(event, "cannot give the Service to the controllers of the cluster") {
			t.Errorf("event %q", event)
		}
	})
}

// TestAutoRemembersRefusals does not try what is refused again because a set has been at rest in between, and forgets it with the set.
func TestAutoRemembersRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Kube.(*fake.Clientset).PrependReactor("create", "endpointslices", func(clientgotesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", fmt.Errorf("exceeded quota: q"))
			})
		}, one(newJobSet("js", "auto", many, starts...)), objectsOf(newService("js"), true)...)
		r.wrote("the set starts", fmt.Sprint("create ", many))
		for range 5 {
			r.becomes(runs...)
			r.becomes(restarts...)
		}
		r.wrote("the set restarts within a minute")
		r.pass(time.Minute)
		r.wrote("a minute has passed", fmt.Sprint("create ", many))
		r.becomes(runs...)
		r.remove("js", "set")
		r.pass(time.Second)
		if all := r.c.memory.denials; len(all) > 0 {
			t.Errorf("refusals of a set that is gone are kept: %v", all)
		}
	})
}
