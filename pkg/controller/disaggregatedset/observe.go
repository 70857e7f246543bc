// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// lagRetry is when to look again while an informer lags behind our own writes. Its event usually comes first.
const lagRetry = time.Second

// observe returns the set and its children as the caches have them. It returns nil for a set that is gone, and nil with a time to wait while the
// caches do not show what the last sync did.
func (c *Controller) observe(key cache.ObjectName) (*plan.Observed, time.Duration, error) {
	// What was read before the question could be older than the answer.
	if !c.consistency.VersionsShown(key) {
		return nil, lagRetry, nil
	}
	ds, err := c.caches.set(key)
	if ds == nil || err != nil {
		if err == nil {
			c.forget(key)
		}
		return nil, 0, err
	}
	if unreadable.Is(ds) { // nothing is known of what it wants; its children stay as they are
		return nil, 0, nil
	}
	obs := &plan.Observed{Set: ds, Conflicts: c.conflicts.Noted(key), Now: metav1.NewTime(c.Clock.Now().Truncate(time.Second))}
	all, err := c.observeChildren(obs)
	if err != nil {
		return nil, 0, err
	}
	if !c.consistency.DeletionsShown(key, all) {
		return nil, lagRetry, nil
	}
	return obs, 0, c.observeTaken(obs)
}

// observeChildren adds the children, and returns all of them.
func (c *Controller) observeChildren(obs *plan.Observed) (all []metav1.Object, err error) {
	ds := obs.Set
	children, err := owned[*watched](c.caches.children, ds.Namespace, ds.UID)
	if err != nil {
		return nil, err
	}
	for _, w := range children {
		obs.Children, all = append(obs.Children, w.child), append(all, w)
	}
	services, err := owned[*watched](c.caches.services, ds.Namespace, ds.UID)
	if err != nil {
		return nil, err
	}
	for _, w := range services {
		obs.Services, all = append(obs.Services, w.service), append(all, w)
	}
	if obs.Scalers, err = owned[*disaggregatedsetv1.DisaggregatedSetRoleScaler](c.caches.scalers, ds.Namespace, ds.UID); err != nil {
		return nil, err
	}
	for _, s := range obs.Scalers {
		all = append(all, s)
	}
	return all, nil
}

// observeTaken adds which names of scalers are those of others.
func (c *Controller) observeTaken(obs *plan.Observed) error {
	for i := range obs.Set.Spec.Roles {
		role := &obs.Set.Spec.Roles[i]
		if !helper.External(role) {
			continue
		}
		name := helper.ScalerName(obs.Set.Name, role.Name)
		obj, err := c.caches.scalers.GetByKey(cache.NewObjectName(obs.Set.Namespace, name).String())
		if err != nil {
			return err
		}
		if scaler, found := obj.(*disaggregatedsetv1.DisaggregatedSetRoleScaler); found && !metav1.IsControlledBy(scaler, obs.Set) {
			if obs.TakenScalers == nil {
				obs.TakenScalers = map[string]bool{}
			}
			obs.TakenScalers[name] = true
		}
	}
	return nil
}

// forget drops what is remembered about a set that is gone.
func (c *Controller) forget(key cache.ObjectName) {
	c.consistency.Forget(key)
	c.runner.Forget(key)
	c.conflicts.Forget(key)
}
