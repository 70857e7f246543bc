// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"sync/atomic"

	discoveryv1 "k8s.io/api/discovery/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Offer is what other controllers of the program may know of this one. The zero Offer is that of a controller that does not run.
type Offer struct{ from atomic.Pointer[Controller] }

// Serves returns whether the controller is about to write the addresses of the Service of a set, so that the Service can be created with the label in its selector
// that keeps the controllers of the cluster away. Should the controller change its mind before it sees the Service, it gives the Service to the cluster.
func (o *Offer) Serves(js *jobsetv1alpha2.JobSet) bool {
	c := o.from.Load()
	return c != nil && c.serves(newSet(js))
}

// serves is careful: pods are watched already, and slices with addresses have been stored before. Otherwise the Service is taken when its first slice is stored.
func (c *Controller) serves(s *set) bool {
	if !c.asks(s) || s.deleted || c.demand.View() == nil || !c.accepted.Load() {
		return false
	}
	verdict, _ := c.asked(&observed{key: s.key(), set: s})
	return verdict == byUs
}

// prepare makes the controller known to others. The function that it returns ends that.
func (c *Controller) prepare() (end func()) {
	for _, obj := range c.slices.List() {
		if _, ok := ownerOfSlice(obj); ok && len(obj.(*discoveryv1.EndpointSlice).Endpoints) > 0 {
			c.accepted.Store(true)
		}
	}
	if c.Mode == jobsetv1alpha2.ServiceEndpointsController {
		c.demand.View()
		if c.Canary != nil {
			c.Canary.Resolves()
		}
	}
	if c.Offer == nil {
		return func() {}
	}
	c.Offer.from.Store(c)
	return func() { c.Offer.from.Store(nil) }
}
