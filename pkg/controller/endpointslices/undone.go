// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"maps"

	discoveryv1 "k8s.io/api/discovery/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// theSelector and theEndpoints are what another party may change back.
const theSelector, theEndpoints = "the selector", "the endpoints"

// create creates slices, unless another party deletes them each time.
func (c *Syncer) create(ctx context.Context, obs *observed, wanted []*discoveryv1.EndpointSlice) error {
	if len(wanted) == 0 || !c.lost.Noted(obs.key) {
		return c.createAll(ctx, obs, wanted)
	}
	set := obs.set.GetObjectMeta()
	if err := c.slicesOf.Creating(set, set); err != nil {
		return c.failed(ctx, obs, operationCreate, wanted[0], err)
	}
	err := c.createAll(ctx, obs, wanted)
	if err == nil {
		c.slicesOf.Created(set, set)
		c.lost.Forget(obs.key)
	}
	return err
}

// updateOne updates a slice, unless it says again what another party has changed, and that party changes it back each time.
func (c *Syncer) updateOne(ctx context.Context, obs *observed, slice *discoveryv1.EndpointSlice) error {
	if obs.set == nil || !c.memory.isChanged(obs.key, slice.Name) {
		return c.update(ctx, obs, slice)
	}
	set := obs.set.GetObjectMeta() // the slices of a Service that the cluster had in the meantime are others
	if err := c.slicesOf.Changing(set, set, theEndpoints); err != nil {
		return c.failed(ctx, obs, operationUpdate, slice, err)
	}
	err := c.update(ctx, obs, slice)
	if err == nil {
		c.slicesOf.Changed(set, set, theEndpoints)
		c.memory.changedBack(obs.key, slice.Name)
	}
	return err
}

// switchOver changes the selector of a Service, unless another party changes it back each time.
func (c *Syncer) switchOver(ctx context.Context, obs *observed) error {
	if err := c.services.Changing(obs.service, obs.service, theSelector, "spec", "selector"); err != nil {
		c.denied(ctx, obs, operationTake, err)
		return err
	}
	selector := maps.Clone(obs.service.Spec.Selector)
	selector[jobsetv1alpha2.EndpointsKey] = jobsetv1alpha2.ServiceEndpointsController
	err := c.patchService(ctx, obs, operationTake, selector)
	if err == nil {
		c.services.Changed(obs.service, obs.service, theSelector)
	}
	return err
}
