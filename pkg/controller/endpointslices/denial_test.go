// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgotesting "k8s.io/client-go/testing"
)

// denials are the answers of an API server to a request that a quota, a policy, a limit or a webhook refuses.
func denials() map[string]error {
	slicesResource := discoveryv1.Resource("endpointslices")
	return map[string]error{
		"a quota": apierrors.NewForbidden(slicesResource, "x", errors.New("exceeded quota: q, requested: count/x=1, used: count/x=1, limited: count/x=1")),
		"a policy": apierrors.NewInvalid(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice").GroupKind(), "x", field.ErrorList{
			field.Forbidden(field.NewPath("endpoints"), "denied request"),
		}),
		"a body that is too large": apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		"a webhook": &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: 404, Reason: metav1.StatusReasonNotFound, Message: `admission webhook "w" denied the request: no such team`,
		}},
		"a webhook with the code of a conflict": &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: 409, Reason: metav1.StatusReasonConflict, Message: `admission webhook "w" denied the request: frozen`,
		}},
	}
}

// denier refuses the requests that are configured by verb and resource.
type denier struct {
	err     error
	refuses atomic.Bool
	refused atomic.Int64
}

// deny has the API refuse requests, each named by verb and resource.
func (r *rig) deny(err error, requests ...string) *denier {
	d := &denier{err: err}
	d.refuses.Store(true)
	r.kube.PrependReactor("*", "*", func(a clientgotesting.Action) (bool, runtime.Object, error) {
		if !d.refuses.Load() || !slices.Contains(requests, a.GetVerb()+" "+a.GetResource().Resource) || a.GetNamespace() != "ns" {
			return false, nil, nil
		}
		d.refused.Add(1)
		return true, nil, d.err
	})
	return d
}

func end(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }

// selects returns whether the controllers of the cluster find the pods of a set.
func (r *rig) selects(set string) bool {
	r.Helper()
	svc, err := r.kube.CoreV1().Services("ns").Get(r.Context(), set, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return !switched(svc)
}

// TestRefusedRequestsGiveTheServiceBack refuses each request about slices, and looks at the address of a pod that has ended.
func TestRefusedRequestsGiveTheServiceBack(t *testing.T) {
	for _, requests := range [][]string{{"update"}, {"update", "create"}, {"update", "delete"}} {
		for name, err := range denials() {
			t.Run(strings.Join(requests, " and ")+" by "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, func(c *Config) { c.Handle = &Handle{} }, one(newJobSet("js", "controller", 2)), newService("js"), podOf("js", 0, true), podOf("js", 1, true))
					if r.selects("js") || len(r.listed()) != 2 {
						t.Fatal("the Service is not taken")
					}
					verbs := make([]string, len(requests))
					for i, verb := range requests {
						verbs[i] = verb + " endpointslices"
					}
					d := r.deny(err, verbs...)
					r.change(podOf("js", 0, true).Name, end)
					r.pass(3 * time.Second)
					if !r.selects("js") {
						t.Error("the Service is not given to the cluster after 3 s")
					}
					if event := r.event(); !strings.Contains(event, "EndpointSlices of the controller are refused") {
						t.Errorf("the event is %q", event)
					}
					r.pass(leavingTimeout)
					undeletable := slices.Contains(requests, "delete")
					if _, stays := r.listed()["js-w-0-0"]; stays != undeletable {
						t.Errorf("the slices list the address of a pod that ended %s ago: %t", leavingTimeout, stays)
					}
					reason, message, known := r.c.Handle.Refusal(newJobSet("js", "controller", 2))
					if reason != ReasonSlicesRefused || message == "" || !known {
						t.Errorf("refusal %q, %q, known: %t", reason, message, known)
					}
					before := d.refused.Load()
					r.pass(time.Hour)
					if n := d.refused.Load() - before; n > 60 {
						t.Errorf("%d refused requests in an hour, want one a minute at most", n)
					}
					if _, stays := r.listed()["js-w-0-0"]; stays != undeletable || !r.selects("js") {
						t.Errorf("an hour later, the address is listed: %t, the cluster writes: %t", stays, r.selects("js"))
					}
					d.refuses.Store(false)
					r.pass(deniedMost + time.Minute)
					if got := r.listed(); r.selects("js") || len(got) != 1 || got["js-w-1-0"] == "" {
						t.Errorf("slices are allowed again, and the cluster writes: %t, addresses are %v", r.selects("js"), got)
					}
				})
			})
		}
	}
}

// TestRefusedDeletions empties slices that it must not delete.
func TestRefusedDeletions(t *testing.T) {
	for name, err := range denials() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, one(newJobSet("js", "controller", 2)), newService("js"), podOf("js", 0, true), podOf("js", 1, true))
				d := r.deny(err, "delete endpointslices")
				r.updateSet(newJobSet("js", "cluster", 2), "2")
				r.pass(leavingTimeout + 5*time.Second)
				if got := r.listed(); len(got) > 0 || !r.selects("js") {
					t.Errorf("addresses are %v, the cluster writes: %t", got, r.selects("js"))
				}
				if event := r.event(); !strings.Contains(event, "EndpointSlices of the controller are refused") {
					t.Errorf("the event is %q", event)
				}
				before := d.refused.Load()
				r.writes()
				r.pass(time.Hour)
				if n := d.refused.Load() - before; n > 60 || n == 0 {
					t.Errorf("%d refused requests in an hour, want one a minute at most", n)
				}
				if writes := slices.DeleteFunc(r.writes(), func(w string) bool { return w == "delete" }); len(writes) > 0 {
					t.Errorf("writes to slices that are empty: %v", writes)
				}
			})
		})
	}
}

// TestRefusedServices refuses to change selectors. The cluster or the controller writes the addresses all the time, and
// the events say who refuses what.
func TestRefusedServices(t *testing.T) {
	for name, err := range denials() {
		t.Run("take, by "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(c *Config) { c.Handle = &Handle{} }, one(newJobSet("js", "cluster", 1)), newService("js"), podOf("js", 0, true))
				d := r.deny(err, "patch services")
				r.updateSet(newJobSet("js", "controller", 1), "2")
				r.pass(leavingTimeout + 5*time.Second)
				if got := r.listed(); len(got) > 0 {
					t.Errorf("our addresses are %v, and the cluster writes them", got)
				}
				if event := r.event(); !strings.Contains(event, "the change of the selector of the Service js is refused") {
					t.Errorf("the event is %q", event)
				}
				if reason, _, known := r.c.Handle.Refusal(newJobSet("js", "controller", 1)); reason != ReasonServiceRefused || !known {
					t.Errorf("reason %q, known: %t", reason, known)
				}
				before := d.refused.Load()
				r.pass(time.Hour)
				if n := d.refused.Load() - before; n > 60 || n == 0 {
					t.Errorf("%d refused requests in an hour, want one a minute at most", n)
				}
				d.refuses.Store(false)
				r.pass(deniedMost + time.Minute)
				if r.selects("js") || len(r.listed()) != 1 {
					t.Errorf("the change is allowed again, and the cluster writes: %t, addresses are %v", r.selects("js"), r.listed())
				}
			})
		})
		t.Run("leave, by "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, one(newJobSet("js", "controller", 2)), newService("js"), podOf("js", 0, true), podOf("js", 1, true))
				d := r.deny(err, "patch services")
				r.updateSet(newJobSet("js", "cluster", 2), "2")
				r.pass(time.Minute)
				if event := r.event(); !strings.Contains(event, "cannot give the Service to the controllers of the cluster") {
					t.Errorf("the event is %q", event)
				}
				r.change(podOf("js", 0, true).Name, end)
				r.pass(2 * time.Second)
				if got := r.listed(); len(got) != 1 || got["js-w-1-0"] == "" {
					t.Errorf("nobody else writes the addresses, and our addresses are %v", got)
				}
				before := d.refused.Load()
				r.pass(time.Hour)
				if n := d.refused.Load() - before; n > 60 || n == 0 {
					t.Errorf("%d refused requests in an hour, want one a minute at most", n)
				}
				d.refuses.Store(false)
				r.pass(deniedMost + leavingTimeout + time.Second)
				if !r.selects("js") || len(r.listed()) != 0 {
					t.Errorf("the change is allowed again, and the cluster writes: %t, addresses are %v", r.selects("js"), r.listed())
				}
			})
		})
	}
}

// TestRefusalsAreToldAgain refuses changes of slices and of the Service, allows them until the slices are right, and refuses them again.
func TestRefusalsAreToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "controller", 3)), newService("js"), podOf("js", 0, true), podOf("js", 1, true), podOf("js", 2, true))
		d := r.deny(denials()["a policy"], "update endpointslices", "patch services")
		for i := range 2 {
			d.refuses.Store(true)
			r.change(podOf("js", i, true).Name, end)
			r.pass(3 * time.Second)
			r.checkReported("cannot give the Service to the controllers of the cluster")
			r.pass(time.Hour)
			if event := r.event(); event != "" {
				t.Errorf("the refusal lasts, and there is another event: %q", event)
			}
			d.refuses.Store(false)
			r.pass(deniedMost + time.Minute)
			if got := r.listed(); r.selects("js") || len(got) != 2-i {
				t.Errorf("changes are allowed again, and the cluster writes: %t, addresses are %v", r.selects("js"), got)
			}
		}
	})
}

// TestRefusedInEachWay refuses changes of slices and of the Service, and then those of slices only: each is tried again
// although the other one is refused.
func TestRefusedInEachWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "controller", 2)), newService("js"), podOf("js", 0, true), podOf("js", 1, true))
		err := denials()["a policy"]
		r.deny(err, "update endpointslices")
		d := r.deny(err, "patch services")
		r.change(podOf("js", 0, true).Name, end)
		r.pass(5 * time.Second)
		if r.selects("js") {
			t.Fatal("the Service is given to the cluster although that is refused")
		}
		d.refuses.Store(false)
		r.pass(deniedFirst + leavingTimeout)
		if got := r.listed(); !r.selects("js") || len(got) > 0 {
			t.Errorf("the cluster writes the addresses: %t; our addresses are %v", r.selects("js"), got)
		}
	})
}
