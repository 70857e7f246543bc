// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// onDemand is the demand of a Syncer without a Controller.
type onDemand struct {
	wanted bool
	view   *view
}

func (d *onDemand) View() *view {
	d.wanted = d.wanted || d.view == nil
	return d.view
}

func (d *onDemand) Current() *view { return d.view }

// NewSyncer returns one that watches nothing by itself. The function declares what it watches all the time.
func NewSyncer(config Config, q Queue, declare func(informers.Need) Cache) *Syncer {
	c := newSyncer(config, q, declare)
	c.demand = &onDemand{}
	return c
}

// Wanted returns whether a Syncer of NewSyncer wants to see more than what is watched all the time, and does not.
func (c *Syncer) Wanted() bool {
	d := c.demand.(*onDemand)
	return d.wanted && d.view == nil
}

// Watch declares what a Syncer of NewSyncer wants to see. It begins to use the caches, and to look at sets, when the
// function that is returned is called.
func (c *Syncer) Watch(declare func(informers.Need) Cache) (filled func()) {
	v := c.declareView(c.Informers, declare)
	return func() {
		*c.demand.(*onDemand) = onDemand{view: v}
		c.LookAtAll()
	}
}

// Unwatch has a Syncer of NewSyncer see no more than what is watched all the time.
func (c *Syncer) Unwatch() { *c.demand.(*onDemand) = onDemand{} }
