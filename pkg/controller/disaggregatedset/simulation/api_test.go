// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the clients through which the controller writes. The API servers decide what they answer. What happens on the way is drawn.

// mine returns whether a controller may change an object. Late deletions reach objects that a user has kept by deleting
// the set without them.
func (e *env) mine(object metav1.Object) bool {
	return ownedBySet(object) || e.made[object.GetUID()] || len(object.GetOwnerReferences()) == 0 && childLike(object)
}

// children.Client of objects that the controller may adopt.
type childClient[T simulation.Object] struct {
	p *process
	simulation.Client[T]
}

func (c childClient[T]) Get(ctx context.Context, name string, options metav1.GetOptions) (T, error) {
	object, err := c.Client.Get(ctx, name, options)
	if err == nil && c.p.sees != nil {
		c.p.sees(object)
	}
	return object, err
}

func (p *process) leaderWorkerSetClient() childClient[leaderWorkerSet] {
	return childClient[leaderWorkerSet]{p, simulation.Client[leaderWorkerSet]{
		Changed: func(before, after leaderWorkerSet, _ string) {
			p.rules.adopted(before, after)
			if metav1.GetControllerOfNoCopy(before) != nil { // an adoption changes nothing of what runs
				p.rules.besideHidden(before)
			}
		},
		Deleted:  func(lws leaderWorkerSet, _ metav1.DeletionPropagation) { p.rules.besideHidden(lws) },
		Resource: p.env.children, Sender: p.sender, Own: func(lws leaderWorkerSet) bool { return p.mine(lws) },
		Created: func(lws leaderWorkerSet) {
			p.made[lws.UID] = true
			p.rules.childCreated(lws)
			p.rules.besideHidden(lws)
		},
	}}
}

func (p *process) serviceClient() childClient[service] {
	return childClient[service]{p, simulation.Client[service]{
		Resource: p.env.services, Sender: p.sender, Own: func(s service) bool { return p.mine(s) }, Created: func(s service) { p.made[s.UID] = true },
		Changed: func(before, after service, _ string) { p.rules.adopted(before, after) },
	}}
}

func (p *process) setClient() simulation.Client[disaggregatedSet] {
	return simulation.Client[disaggregatedSet]{
		Resource: p.env.sets, Sender: p.sender,
		Changed: func(before, after disaggregatedSet, _ string) { p.rules.statusStored(before, after) },
	}
}

func (p *process) scalerClient() childClient[roleScaler] {
	return childClient[roleScaler]{p, simulation.Client[roleScaler]{
		Changed:  func(before, after roleScaler, _ string) { p.rules.adopted(before, after) },
		Resource: p.env.scalers, Sender: p.sender, Own: func(s roleScaler) bool { return p.mine(s) },
		Created: func(s roleScaler) {
			p.made[s.UID] = true
			p.rules.scalerCreated(s)
		},
	}}
}

// setClient is a client of DisaggregatedSets.
type setClient struct {
	p *process
	simulation.Client[disaggregatedSet]
}

func (c setClient) Get(ctx context.Context, name string, options metav1.GetOptions) (disaggregatedSet, error) {
	if c.p.trusting {
		ds, _ := c.p.sets.Get(name)
		return ds, nil
	}
	ds, err := c.Client.Get(ctx, name, options)
	if err == nil && ds.DeletionTimestamp == nil {
		c.p.confirmed[ds.UID] = true
	}
	return ds, err
}

func (c setClient) UpdateStatus(ctx context.Context, ds disaggregatedSet, _ metav1.UpdateOptions) (disaggregatedSet, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return c.Client.UpdateStatus(ds, func(into, from disaggregatedSet) { into.Status = *from.Status.DeepCopy() })
}

// scalerClient is a client of scalers.
type scalerClient struct{ childClient[roleScaler] }

func (c scalerClient) Create(ctx context.Context, wanted roleScaler, options metav1.CreateOptions) (roleScaler, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return c.childClient.Create(ctx, wanted, options)
}

func (c scalerClient) UpdateStatus(ctx context.Context, s roleScaler, _ metav1.UpdateOptions) (roleScaler, error) {
	over := c.p.torn && c.p.end != nil && c.p.requests < 0
	if ctx.Err() != nil || over {
		return nil, context.Canceled
	}
	return c.childClient.UpdateStatus(s, func(into, from roleScaler) { into.Status = *from.Status.DeepCopy() })
}
