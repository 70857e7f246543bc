// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"errors"
	"net"
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
)

// failing is a resolver whose look-ups fail.
type failing struct{ err error }

func (f failing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, f.err
}

// TestCanaryWithoutAnswers keeps what is in our hands while nothing is known, and takes nothing.
func TestCanaryWithoutAnswers(t *testing.T) {
	timeout := &net.DNSError{Err: "i/o timeout", IsTimeout: true}
	for name, tc := range map[string]struct {
		resolver Resolver
		refused  bool
		keeps    bool
	}{
		"no DNS server answers":           {resolver: failing{timeout}, keeps: true},
		"DNS servers fail":                {resolver: failing{&net.DNSError{Err: "server misbehaving", IsTemporary: true}}, keeps: true},
		"the record cannot be written":    {resolver: failing{errors.New("no look-up is expected")}, refused: true, keeps: true},
		"DNS servers know no such record": {resolver: resolver(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(c *Config) {
					c.Canary, c.Handle = &Canary{Namespace: "system", Resolver: tc.resolver}, &Handle{}
					if tc.refused {
						c.Kube.(*fake.Clientset).PrependReactor("create", "endpointslices", func(a clientgotesting.Action) (bool, runtime.Object, error) {
							return a.GetNamespace() == "system", nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", nil)
						})
					}
				}, append(one(newJobSet("js", "controller", 1)), newJobSet("next", "controller", 1)), newService("js", taken), podOf("js", 0, true), newService("next"), podOf("next", 1, true))
				r.pass(time.Hour)
				if keeps := !r.selects("js"); keeps != tc.keeps {
					t.Errorf("an hour later, the Service is in our hands: %t", keeps)
				}
				if !r.selects("next") {
					t.Error("a Service is taken although nothing is known")
				}
				_, message, known := r.c.Handle.Refusal(newJobSet("next", "controller", 1))
				if cannot := strings.Contains(message, "cannot be looked up"); cannot != tc.keeps || !known {
					t.Errorf("refusal %q, known: %t", message, known)
				}
			})
		})
	}
}
