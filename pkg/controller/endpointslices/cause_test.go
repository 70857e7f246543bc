// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// TestCauses has what users read.
func TestCauses(t *testing.T) {
	const why = `User "controller" cannot create resource "endpointslices" in API group "discovery.k8s.io" in the namespace "default"`
	for _, tc := range []struct {
		got  cause
		want cause
	}{
		{serviceShared("js"), cause{Reason: "ServiceShared", Message: "other JobSets use the Service js too; give each JobSet a subdomain of its own in spec.network"}},
		{serviceNotOwned("js"), cause{Reason: "ServiceNotOwned", Message: "the JobSet is not the controller of the Service js; delete the Service, and the JobSet creates its own"}},
		{selectorChanged("js"), cause{Reason: "SelectorChanged", Message: "the selector of the Service js was changed; delete the Service, and the JobSet creates it again"}},
		{namedTargetPort("js", "web"), cause{Reason: "NamedTargetPort", Message: "the target of the port web of the Service js is a name; use a number"}},
		{notPermitted(), cause{
			Reason: "NotPermitted", Message: "the controller has no permission to watch EndpointSlices; restore the rule for endpointslices in the ClusterRole jobset-controller-manager",
		}},
		{slicesRefused(errors.New("creating an endpointslice: forbidden")), cause{
			Reason: "SlicesRefused", Message: "EndpointSlices of the controller are refused; allow them, or annotate the JobSet with jobset-apiserver.io/service-endpoints=cluster: " +
				"creating an endpointslice: forbidden",
		}},
		{slicesRefused(apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "js", errors.New(why))), cause{
			Reason: "SlicesRefused", Message: "the controller has no permission to write EndpointSlices; apply artifacts/base/rbac/endpoints.yaml, or annotate the JobSet with " +
				`jobset-apiserver.io/service-endpoints=cluster: endpointslices.discovery.k8s.io "js" is forbidden: ` + why,
		}},
		{serviceRefused("js", errors.New("patching: forbidden")), cause{
			Reason: "ServiceRefused", Message: "the change of the selector of the Service js is refused; allow jobset-controller to patch it: patching: forbidden",
		}},
		{controllerOff(), cause{Reason: "ControllerOff", Message: "the controller endpoints is switched off in --controllers of jobset-controller"}},
		{canaryNotResolved("the canary record c does not resolve"), cause{
			Reason: "CanaryNotResolved", Message: "the canary record c does not resolve; use a DNS server that reads EndpointSlices, or --service-endpoints-canary=false if only the " +
				"controller cannot look up names",
		}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("cause (-want +got):\n%s", diff)
		}
	}
}

// TestControllerIsOff has sets of a program without the controller refused that ask by their annotation.
func TestControllerIsOff(t *testing.T) {
	handle := &Handle{Off: true}
	if reason, _, known := handle.Refusal(newJobSet("js", "controller", 1)); reason != ReasonControllerOff || !known {
		t.Errorf("reason %q, known: %t", reason, known)
	}
	if _, _, known := handle.Refusal(newJobSet("js", "", 1)); known {
		t.Error("a set that does not ask is known")
	}
}

// changes notes the sets of which the answer has changed.
type changes struct {
	mu   sync.Mutex
	sets []string
}

func (c *changes) note(set cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets = append(c.sets, set.String())
}

func (c *changes) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.sets = nil }()
	return slices.Clone(c.sets)
}

// TestRefusalEnds follows what is known of a set that is refused, is served when the cause is gone, and asks no more in the end.
func TestRefusalEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handle, changed := &Handle{}, &changes{}
		handle.OnChange(changed.note)
		js := newJobSet("js", "controller", 1)
		if _, _, known := handle.Refusal(js); known {
			t.Error("a refusal is known without a controller")
		}
		foreign := newService("js")
		foreign.Spec.Selector["role"] = "leader"
		r := newRig(t, func(c *Config) { c.Handle = handle }, one(js), foreign, podOf("js", 0, true))
		check := func(when, want string, news ...string) {
			t.Helper()
			reason, _, known := handle.Refusal(js)
			if reason != want || !known {
				t.Errorf("%s, the reason is %q, known: %t, want %q", when, reason, known, want)
			}
			if diff := cmp.Diff(news, changed.take()); diff != "" {
				t.Errorf("news %s (-want +got):\n%s", when, diff)
			}
		}
		check("with another selector", ReasonSelectorChanged, "ns/js")
		next := newService("js")
		next.ResourceVersion = "2"
		if _, err := r.kube.CoreV1().Services("ns").Update(t.Context(), next, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Second)
		check("with the right selector", "", "ns/js")
		js = newJobSet("js", "cluster", 1)
		r.updateSet(js, "3")
		r.pass(2 * leavingTimeout)
		check("with another annotation", "")
	})
}

// TestRefusalOfANewSet is known before anybody has looked at the set.
func TestRefusalOfANewSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handle := &Handle{}
		newRig(t, func(c *Config) { c.Handle = handle }, one(newJobSet("other", "controller", 1)))
		shared := newJobSet("js", "controller", 1)
		shared.Spec.Network.Subdomain = "other"
		if reason, _, known := handle.Refusal(shared); reason != ReasonServiceShared || !known {
			t.Errorf("reason %q, known: %t", reason, known)
		}
		if _, _, known := handle.Refusal(newJobSet("js", "controller", 1)); known {
			t.Error("a set that nobody has looked at is known")
		}
	})
}
