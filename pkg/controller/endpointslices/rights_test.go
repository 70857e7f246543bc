// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/permission"
)

// noRight is the answer to a user without the permission.
func noRight() error {
	const why = `User "u" cannot update resource "endpointslices" in API group "discovery.k8s.io" in the namespace "ns"`
	return apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "x", errors.New(why))
}

// TestYoungServersKeepServices has a kube-apiserver that has just started refuse updates for some seconds.
func TestYoungServersKeepServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Handle = &Handle{} }, one(newJobSet("js", "controller", 2)), newService("js"), podOf("js", 0, true), podOf("js", 1, true))
		d := r.deny(noRight(), "update endpointslices")
		r.change(podOf("js", 0, true).Name, end)
		r.pass(permission.LacksAfter / 2)
		if r.selects("js") || d.refused.Load() == 0 {
			t.Errorf("the Service is given to the cluster: %t, after %d refusals", r.selects("js"), d.refused.Load())
		}
		d.refuses.Store(false)
		r.pass(permission.LacksAfter)
		if got := r.listed(); r.selects("js") || len(got) != 1 || got["js-w-1-0"] == "" {
			t.Errorf("updates are allowed again, the cluster writes: %t, addresses are %v", r.selects("js"), got)
		}
	})
}

// TestMissingRightsGiveTheServiceBack refuses updates for good.
func TestMissingRightsGiveTheServiceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Handle = &Handle{} }, one(newJobSet("js", "controller", 2)), newService("js"), podOf("js", 0, true), podOf("js", 1, true))
		d := r.deny(noRight(), "update endpointslices")
		r.change(podOf("js", 0, true).Name, end)
		r.pass(2 * permission.LacksAfter)
		if !r.selects("js") {
			t.Error("the Service is not given to the cluster")
		}
		if event := r.event(); !strings.Contains(event, "the controller has no permission to write EndpointSlices; apply artifacts/base/rbac/endpoints.yaml") {
			t.Errorf("the event is %q", event)
		}
		r.pass(leavingTimeout)
		if got := r.listed(); got["js-w-0-0"] != "" {
			t.Errorf("addresses are %v", got)
		}
		before := d.refused.Load()
		r.pass(time.Hour)
		if n := d.refused.Load() - before; n > 60 {
			t.Errorf("%d refused requests in an hour, want one a minute at most", n)
		}
		d.refuses.Store(false)
		r.pass(deniedMost + time.Minute)
		if r.selects("js") {
			t.Error("updates are allowed again, and the cluster still writes")
		}
	})
}
