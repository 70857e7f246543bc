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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

// failing is a resolver whose look-ups fail.
type failing struct{ err error }

func (f failing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, f.err
}

// unexpected is a resolver that is not asked.
var unexpected = failing{errors.New("no look-up is expected")}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, CanaryService, errors.New("exceeded quota"))
}

// TestCanaryWithoutAnswers keeps the Services that were taken while nothing is known, and takes none.
func TestCanaryWithoutAnswers(t *testing.T) {
	timeout := &net.DNSError{Err: "i/o timeout", IsTimeout: true}
	for name, tc := range map[string]struct {
		resolver Resolver
		// answers is what the API answers to the creation of each resource in the namespace of the record.
		answers map[string]error
		keeps   bool
		reason  string
		want    string
	}{
		"no DNS server answers": {resolver: failing{timeout}, keeps: true, reason: ReasonCanaryNotResolved, want: "cannot be looked up"},
		"DNS servers fail": {
			resolver: failing{&net.DNSError{Err: "server misbehaving", IsTemporary: true}}, keeps: true, reason: ReasonCanaryNotResolved,
			want: "cannot be looked up",
		},
		"the EndpointSlice is refused": {
			resolver: unexpected, answers: map[string]error{"endpointslices": forbidden("endpointslices")}, keeps: true, reason: ReasonSlicesRefused,
			want: "the EndpointSlice system/jobset-apiserver-canary of the canary record is refused; allow jobset-controller to write it, or set " +
				`--service-endpoints-canary=false: endpointslices "jobset-apiserver-canary" is forbidden: exceeded quota`,
		},
		"the Service is refused": {
			resolver: unexpected, answers: map[string]error{"services": forbidden("services")}, keeps: true, reason: ReasonServiceRefused,
			want: "the Service system/jobset-apiserver-canary of the canary record is refused; allow jobset-controller to write it, or set " +
				`--service-endpoints-canary=false: services "jobset-apiserver-canary" is forbidden: exceeded quota`,
		},
		"the API does not answer": {
			resolver: unexpected, answers: map[string]error{"services": errors.New("connection refused")}, keeps: true, reason: ReasonCanaryNotResolved,
			want: "cannot be looked up",
		},
		"DNS servers know no such record": {resolver: resolver(nil), reason: ReasonCanaryNotResolved, want: "does not resolve"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(c *Config) {
					c.Canary, c.Handle = &Canary{Namespace: "system", Resolver: tc.resolver}, &Handle{}
					for resource, err := range tc.answers {
						c.Kube.(*fake.Clientset).PrependReactor("create", resource, func(a clientgotesting.Action) (bool, runtime.Object, error) {
							return a.GetNamespace() == "system", nil, err
						})
					}
				}, append(one(newJobSet("js", "controller", 1)), newJobSet("next", "controller", 1)), newService("js", taken), podOf("js", 0, true), newService("next"), podOf("next", 1, true))
				r.pass(time.Hour)
				if keeps := !r.selects("js"); keeps != tc.keeps {
					t.Errorf("an hour later, the Service is still taken: %t", keeps)
				}
				if !r.selects("next") {
					t.Error("a Service is taken although nothing is known")
				}
				reason, message, known := r.c.Handle.Refusal(newJobSet("next", "controller", 1))
				if reason != tc.reason || !strings.Contains(message, tc.want) || !known {
					t.Errorf("refusal %s: %q, known: %t", reason, message, known)
				}
			})
		})
	}
}

// behind is a cache that does not show yet what has happened.
type behind struct{ Cache }

func (behind) ByIndex(string, string) ([]any, error) { return nil, nil }

// TestCachesThatShowATakenServiceLater has a Service that the controller before this one has taken a moment ago. One cache of Services shows
// that, and the other one and that of slices do not.
func TestCachesThatShowATakenServiceLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Canary = &Canary{Namespace: "system", Resolver: failing{&net.DNSError{Err: "i/o timeout", IsTimeout: true}}}
		}, one(newJobSet("js", "controller", 1)), newService("js", taken), podOf("js", 0, true))
		r.c.switched, r.c.slices = behind{r.c.switched}, behind{r.c.slices}
		if _, err := r.c.Sync(t.Context(), cache.NewObjectName("ns", "js")); err != nil {
			t.Fatal(err)
		}
		if r.selects("js") {
			t.Error("the Service is given back although nothing is known of the record")
		}
	})
}
