// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"sync/atomic"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Handle lets other controllers of the program ask this one. The zero Handle means that this controller does not run.
type Handle struct {
	// Off means that the program runs without the controller.
	Off bool

	from atomic.Pointer[Syncer]
	// changed is called when the answer of Refusal has changed for a set; nil if no controller asked for that.
	changed atomic.Pointer[func(set cache.ObjectName)]
}

// OnChange has changed called when the answer of Refusal has changed for a set.
func (h *Handle) OnChange(changed func(set cache.ObjectName)) { h.changed.Store(&changed) }

// notify says that the answer of Refusal has changed for a set.
func (h *Handle) notify(set cache.ObjectName) {
	if h == nil {
		return
	}
	if changed := h.changed.Load(); changed != nil {
		(*changed)(set)
	}
}

// Refusal returns the reason for which the cluster writes the addresses of a set that asks us to, and a message that
// says what to do; both are empty for a set whose addresses are written as it asks. It is not known of a set that we
// have not looked at yet, and while no controller runs.
func (h *Handle) Refusal(js *jobsetv1alpha2.JobSet) (reason, message string, known bool) {
	c, s := h.from.Load(), newSet(js)
	switch {
	case c != nil:
		s = c.newSet(js)
	case h.Off && s.mode == jobsetv1alpha2.ServiceEndpointsController && s.service != "":
		why := controllerOff()
		return why.Reason, why.Message, true
	default:
		return "", "", false
	}
	switch {
	case c.modeOf(s) == jobsetv1alpha2.ServiceEndpointsAuto:
		return "", "", true // it leaves to us who does
	case !c.asks(s):
		return "", "", len(c.taken(s.key())) == 0
	}
	why, known := c.memory.outcomeOf(s.key(), s.uid)
	if !known && len(c.taken(s.key())) == 0 { // a new set
		_, why = c.asked(&observed{key: s.key(), set: s})
		known = why.Reason != ""
	}
	return why.Reason, why.Message, known
}

// Serves returns whether the controller is about to write the addresses of the Service of a set, so that the Service
// can be created with the label in its selector that keeps the controllers of the cluster away. Should the controller
// change its mind before it sees the Service, it gives the Service to the cluster.
func (h *Handle) Serves(js *jobsetv1alpha2.JobSet) bool {
	c := h.from.Load()
	return c != nil && c.serves(c.newSet(js))
}

// serves is careful: pods are watched already, and slices with addresses have been stored before. Otherwise the Service
// is taken when its first slice is stored.
func (c *Syncer) serves(s *set) bool {
	if !c.asks(s) || s.deleted || c.demand.View() == nil || !c.accepted.Load() {
		return false
	}
	verdict, _ := c.asked(&observed{key: s.key(), set: s})
	return verdict == byUs
}

// Prepare makes the controller known to others. The function that it returns ends that.
func (c *Syncer) Prepare() (end func()) {
	for _, obj := range c.slices.List() {
		if _, ok := ownerOfSlice(obj); ok && len(obj.(*discoveryv1.EndpointSlice).Endpoints) > 0 {
			c.accepted.Store(true)
		}
	}
	if c.Mode == jobsetv1alpha2.ServiceEndpointsController {
		c.expect()
	}
	if c.Handle == nil {
		return func() {}
	}
	c.Handle.from.Store(c)
	return func() { c.Handle.from.Store(nil) }
}

// expect begins what must be there before the first Service can be taken: pods are watched, and the canary record is looked up.
func (c *Syncer) expect() {
	c.demand.View()
	if c.Canary != nil {
		c.Canary.Resolves()
	}
}
