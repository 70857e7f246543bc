// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// Unreadable implements Caches.
func (c caches) Unreadable(ds *disaggregatedsetv1.DisaggregatedSet) (list []plan.Unreadable, err error) {
	for _, from := range []struct {
		*informers.Informer
		kind plan.OrphanKind
	}{{c.children, plan.OrphanLeaderWorkerSet}, {c.scalers, plan.OrphanScaler}} {
		found, err := from.Unreadable(ds.Namespace)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if !mayBelong(&found[i], ds) {
				continue
			}
			u := plan.Unreadable{Kind: from.kind, Name: found[i].Name, Cause: found[i].Cause, Slice: plan.AnySlice}
			if child, ok := found[i].Part.(*watched); ok && child.child.Role != "" {
				u.Slice, u.Role = child.child.Slice, child.child.Role
			}
			list = append(list, u)
		}
	}
	return list, nil
}

// mayBelong returns whether an object that cannot be read is a child of the set, or may be one: of an object whose
// metadata cannot be read only the name is known.
func mayBelong(p *informers.Placeholder, ds *disaggregatedsetv1.DisaggregatedSet) bool {
	known, ok := p.Part.(metav1.Object)
	if !ok || known.GetUID() == "" {
		known = &metav1.ObjectMeta{UID: p.UID, Labels: p.Labels, OwnerReferences: p.OwnerReferences}
	}
	switch owner := ownerOf(known); {
	case owner != nil:
		return owner.UID == ds.UID
	case known.GetUID() == "":
		return strings.HasPrefix(p.Name, ds.Name+"-")
	}
	return p.Labels[disaggregatedsetv1.SetNameLabelKey] == ds.Name && metav1.GetControllerOfNoCopy(known) == nil
}

// onUnreadable looks at the sets that may have a child whose state cannot be read, or could not be read before.
func (c *Controller) onUnreadable(p informers.Placeholder) {
	for _, obj := range c.caches.sets.List() {
		if ds, ok := obj.(*disaggregatedsetv1.DisaggregatedSet); ok && ds.Namespace == p.Namespace && mayBelong(&p, ds) {
			c.queue.Add(cache.MetaObjectToName(ds))
		}
	}
}
