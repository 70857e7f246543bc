// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/permission"
)

// TestForeignServices leaves a Service alone that others have to do with, and says why.
func TestForeignServices(t *testing.T) {
	shares := func(js *jobsetv1alpha2.JobSet) { js.Spec.Network.Subdomain = "js" }
	for name, tc := range map[string]struct {
		sets    []*jobsetv1alpha2.JobSet
		service *corev1.Service
		canary  *Canary
		want    cause
	}{
		"another owner": {
			service: newService("js", func(s *corev1.Service) { s.OwnerReferences[0].UID = "another" }), want: serviceNotOwned("js"),
		},
		"another selector": {
			service: newService("js", func(s *corev1.Service) { s.Spec.Selector["role"] = "leader" }), want: selectorChanged("js"),
		},
		"another user": {
			sets: []*jobsetv1alpha2.JobSet{newJobSet("other", "cluster", 1, shares)}, service: newService("js"), want: serviceShared("js"),
		},
		"a port of a name": {
			service: newService("js", func(s *corev1.Service) {
				s.Spec.Ports = []corev1.ServicePort{{Name: "web", Port: 80}}
				s.Spec.Ports[0].TargetPort.Type, s.Spec.Ports[0].TargetPort.StrVal = 1, "http"
			}), want: namedTargetPort("js", "web"),
		},
		"no names": {
			service: newService("js"), canary: &Canary{Namespace: "system", Resolver: resolver(nil)},
			want: canaryNotResolved("the canary record canary.jobset-apiserver-canary.system.svc does not resolve"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(c *Config) { c.Canary, c.Mode, c.Handle = tc.canary, "controller", &Handle{} }, append(tc.sets, newJobSet("js", "", 1)), tc.service, podOf("js", 0, true))
				r.pass(2 * canaryTimeout)
				want := "Warning ServiceEndpointsByCluster The controllers of the cluster write the addresses of the Service: " + tc.want.Message
				if got := r.event(); got != want {
					t.Errorf("event %q, want %q", got, want)
				}
				if got := r.event(); got != "" {
					t.Errorf("another event: %q", got)
				}
				reason, message, known := r.c.Handle.Refusal(newJobSet("js", "", 1))
				if got := (cause{Reason: reason, Message: message}); got != tc.want || !known {
					t.Errorf("refusal %v, known: %t, want %v", got, known, tc.want)
				}
				if got := r.listed(); len(got) > 0 {
					t.Errorf("addresses are %v", got)
				}
			})
		})
	}
}

// TestNoPermission leaves all Services to the cluster if the controller must not watch slices.
func TestNoPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			refuse := func(clientgotesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", nil)
			}
			kube := c.Kube.(*fake.Clientset)
			kube.PrependReactor("list", "endpointslices", refuse)
			kube.PrependWatchReactor("endpointslices", func(clientgotesting.Action) (bool, watch.Interface, error) {
				_, _, err := refuse(nil)
				return true, nil, err
			})
		}, one(newJobSet("js", "controller", 1)), newService("js"), podOf("js", 0, true))
		want := "Warning ServiceEndpointsByCluster The controllers of the cluster write the addresses of the Service: " + notPermitted().Message
		if got := r.event(); got != want {
			t.Errorf("event %q, want %q", got, want)
		}
		if writes := r.writes(); len(writes) > 0 {
			t.Errorf("writes are %v, want none", writes)
		}
	})
}

// TestRefusedWhileTheServerStarts has an API server that has just started, and refuses slices until it has loaded its
// roles. What an earlier process has taken stays taken.
func TestRefusedWhileTheServerStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, refusedFor := range []time.Duration{5 * time.Second, permission.LacksAfter - 5*time.Second} {
			loaded := time.Now().Add(refusedFor)
			r := newRig(t, func(c *Config) {
				refuse := func() error {
					if time.Now().Before(loaded) {
						return apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", nil)
					}
					return nil
				}
				kube := c.Kube.(*fake.Clientset)
				kube.PrependReactor("list", "endpointslices", func(clientgotesting.Action) (bool, runtime.Object, error) {
					err := refuse()
					return err != nil, nil, err
				})
				kube.PrependWatchReactor("endpointslices", func(clientgotesting.Action) (bool, watch.Interface, error) {
					err := refuse()
					return err != nil, nil, err
				})
			}, one(newJobSet("js", "controller", 1)), newService("js", taken), podOf("js", 0, true))
			r.pass(time.Minute)
			if got := r.event(); got != "" {
				t.Errorf("refused for %v: event %q, want none", refusedFor, got)
			}
			if diff := cmp.Diff([]string{"create 1"}, r.writes()); diff != "" {
				t.Errorf("refused for %v: writes (-want +got):\n%s", refusedFor, diff)
			}
		}
	})
}

// TestNamespaceThatEnds tries no second time to write slices where nothing can be created any more, and takes no Service there.
func TestNamespaceThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Kube.(*fake.Clientset).PrependReactor("create", "endpointslices", func(clientgotesting.Action) (bool, runtime.Object, error) {
				err := apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", errors.New("the namespace is being terminated"))
				err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
				return true, nil, err
			})
		}, one(newJobSet("js", "controller", 1)), newService("js"), podOf("js", 0, true))
		r.pass(time.Minute)
		if diff := cmp.Diff([]string{"create 1"}, r.writes()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// resolver looks up the canary record in the slices, as a DNS server does.
type resolver func() []netip.Addr

func (f resolver) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	if f == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if network != "ip" || host != "canary.jobset-apiserver-canary.system.svc" {
		return nil, fmt.Errorf("look-up of %s %s", network, host)
	}
	return f(), nil
}

// TestCanary takes no Service before the record resolves to its newest address, keeps it when one look-up
// fails, and gives it back when several do.
func TestCanary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kube kubernetes.Interface
		works := true
		canary := &Canary{Namespace: "system", Resolver: resolver(func() (all []netip.Addr) {
			list, err := kube.DiscoveryV1().EndpointSlices("system").List(context.Background(), metav1.ListOptions{})
			if err == nil && works && len(list.Items) == 1 {
				all = []netip.Addr{netip.MustParseAddr("::ffff:" + list.Items[0].Endpoints[0].Addresses[0])}
			}
			return all
		})}
		r := newRig(t, func(c *Config) { c.Canary, kube = canary, c.Kube }, one(newJobSet("js", "controller", 1)), newService("js"), podOf("js", 0, true))
		r.pass(5 * time.Second)
		if len(r.listed()) != 1 {
			t.Fatal("no slices although the record resolves")
		}
		works = false
		r.pass(canaryEvery + canaryTimeout + 5*time.Second)
		if len(r.listed()) != 1 {
			t.Error("the Service is given back when the record fails once")
		}
		r.pass(canaryFailures*(canaryRetry+canaryTimeout) + leavingTimeout)
		if len(r.listed()) != 0 {
			t.Error("the Service is not given back although the record does not resolve")
		}
		works = true
		r.pass(2 * canaryTimeout)
		if len(r.listed()) != 1 {
			t.Error("the Service is not taken again although the record resolves again")
		}
		// Another process leads, and has not seen the record resolve.
		works = false
		canary.mu.Lock()
		canary.resolves, canary.why, canary.failures = false, cause{}, 0
		canary.mu.Unlock()
		r.pass(canaryEvery + canaryTimeout + 5*time.Second)
		if len(r.listed()) != 1 {
			t.Error("the Service is given back when the record fails once for a process that has just started")
		}
		r.pass(canaryFailures*(canaryRetry+canaryTimeout) + leavingTimeout)
		if len(r.listed()) != 0 {
			t.Error("the Service is not given back although the record does not resolve for a process that has just started")
		}
	})
}
