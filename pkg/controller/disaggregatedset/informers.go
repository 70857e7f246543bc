// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

// Resources that are watched.
const (
	resourceSets     = "disaggregatedsets"
	resourceScalers  = "disaggregatedsetrolescalers"
	resourceChildren = "leaderworkersets"
	resourceServices = "services"
)

const (
	// indexOwner is the index of children by the UID of the set that controls them.
	indexOwner = "owner"
	// indexSet is the index of children by the namespace and name of the set that controls or may adopt them.
	indexSet = "set"
)

// caches are what a decision is made on. They hold no more of an object than decisions use.
type caches struct {
	sets, scalers, children, services *informers.Informer
}

// newCaches declares what DisaggregatedSets need.
func newCaches(kind *informers.Kind, client versioned.Interface) caches {
	gv, childGV := disaggregatedsetv1.SchemeGroupVersion, leaderworkersetv1.SchemeGroupVersion
	sets := informers.NewResource(kind.Aggregated(gv), gv.WithResource(resourceSets), &disaggregatedsetv1.DisaggregatedSet{},
		client, client.DisaggregatedsetV1().DisaggregatedSets(metav1.NamespaceAll))
	scalers := informers.NewResource(kind.Aggregated(gv), gv.WithResource(resourceScalers), &disaggregatedsetv1.DisaggregatedSetRoleScaler{},
		client, client.DisaggregatedsetV1().DisaggregatedSetRoleScalers(metav1.NamespaceAll))
	children := informers.NewResource(kind.Aggregated(childGV), childGV.WithResource(resourceChildren), &leaderworkersetv1.LeaderWorkerSet{},
		client, client.LeaderworkersetV1().LeaderWorkerSets(metav1.NamespaceAll))
	byOwner := cache.Indexers{indexOwner: ownerUID, indexSet: setOf}
	return caches{
		sets:    kind.Informer(informers.Need{Resource: sets, Transform: transform}),
		scalers: kind.Informer(informers.Need{Resource: scalers, Transform: transform, Indexers: byOwner}),
		children: kind.Informer(informers.Need{Resource: children, Label: disaggregatedsetv1.SetNameLabelKey, Unlabeled: true,
			Transform: transform, Indexers: byOwner}),
		services: kind.Informer(informers.Need{Resource: kind.Services(), Label: disaggregatedsetv1.SetNameLabelKey, Transform: transform,
			Indexers: byOwner}),
	}
}

func (c caches) versions() map[string]consistency.Versioned {
	return map[string]consistency.Versioned{
		resourceSets: c.sets, resourceScalers: c.scalers, resourceChildren: c.children, resourceServices: c.services,
	}
}

// watched is what the cache keeps of a LeaderWorkerSet or of a Service.
type watched struct {
	metav1.ObjectMeta
	child   plan.Child
	service plan.Service
	// orphan is what decisions use of the object if it has no controller and a set may adopt it; nil otherwise.
	orphan *plan.Orphan
}

var _ metav1.ObjectMetaAccessor = &watched{}

// GetObjectMeta returns what the cache needs to know of an object.
func (w *watched) GetObjectMeta() metav1.Object { return &w.ObjectMeta }

func newWatched(obj metav1.Object) *watched {
	w := &watched{orphan: plan.OrphanOf(obj), ObjectMeta: metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
		DeletionTimestamp: obj.GetDeletionTimestamp(),
	}}
	if owner := ownerOf(obj); owner != nil {
		w.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return w
}

// transform drops what no decision uses, so that the caches of a large cluster stay small. It accepts its own results.
func transform(obj any) (any, error) {
	switch o := obj.(type) {
	case *disaggregatedsetv1.DisaggregatedSet:
		o.ManagedFields = nil
		delete(o.Annotations, corev1.LastAppliedConfigAnnotation) // a copy of the whole manifest; status writes do not touch it
	case *disaggregatedsetv1.DisaggregatedSetRoleScaler:
		o.ManagedFields = nil
		delete(o.Annotations, corev1.LastAppliedConfigAnnotation)
	case *leaderworkersetv1.LeaderWorkerSet:
		w := newWatched(o)
		w.child = plan.ChildOf(o)
		return w, nil
	case *corev1.Service:
		w := newWatched(o)
		w.service = plan.ServiceOf(o)
		return w, nil
	}
	return obj, nil
}

// ownerUID indexes a child by the UID of the set that controls it.
func ownerUID(obj any) ([]string, error) {
	child, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("indexing by owner: %T is no child", obj)
	}
	if owner := ownerOf(child); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

// orphanOf returns what decisions use of a cached object if it has no controller and a set may adopt it; nil otherwise.
func orphanOf(obj any) *plan.Orphan {
	switch o := obj.(type) {
	case *watched:
		return o.orphan
	case *disaggregatedsetv1.DisaggregatedSetRoleScaler:
		return plan.OrphanOf(o)
	}
	return nil
}

// setOf indexes a child by the name of the set that controls or may adopt it.
func setOf(obj any) ([]string, error) {
	child, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("indexing by set: %T is no child", obj)
	}
	if owner := ownerOf(child); owner != nil {
		return []string{cache.NewObjectName(child.GetNamespace(), owner.Name).String()}, nil
	}
	if orphan := orphanOf(obj); orphan != nil {
		return []string{cache.NewObjectName(child.GetNamespace(), orphan.Set).String()}, nil
	}
	return nil, nil
}

// ownerOf returns the reference to the set that controls the object; nil if none does.
func ownerOf(obj metav1.Object) *metav1.OwnerReference {
	return informers.OwnerOf(obj, disaggregatedsetv1.SchemeGroupVersion.WithKind("DisaggregatedSet"))
}

var _ Caches = caches{}

// Set implements Caches.
func (c caches) Set(key cache.ObjectName) (*disaggregatedsetv1.DisaggregatedSet, error) {
	return informers.ByKey[disaggregatedsetv1.DisaggregatedSet](c.sets, key)
}

// LeaderWorkerSets implements Caches.
func (c caches) LeaderWorkerSets(ds *disaggregatedsetv1.DisaggregatedSet) (list []plan.Child, err error) {
	all, err := owned[*watched](c.children, ds.Namespace, ds.UID)
	for _, w := range all {
		list = append(list, w.child)
	}
	return list, err
}

// Services implements Caches.
func (c caches) Services(ds *disaggregatedsetv1.DisaggregatedSet) (list []plan.Service, err error) {
	all, err := owned[*watched](c.services, ds.Namespace, ds.UID)
	for _, w := range all {
		list = append(list, w.service)
	}
	return list, err
}

// Scalers implements Caches.
func (c caches) Scalers(ds *disaggregatedsetv1.DisaggregatedSet) ([]*disaggregatedsetv1.DisaggregatedSetRoleScaler, error) {
	return owned[*disaggregatedsetv1.DisaggregatedSetRoleScaler](c.scalers, ds.Namespace, ds.UID)
}

// Scaler implements Caches.
func (c caches) Scaler(key cache.ObjectName) (*disaggregatedsetv1.DisaggregatedSetRoleScaler, error) {
	obj, err := c.scalers.GetByKey(key.String())
	scaler, _ := obj.(*disaggregatedsetv1.DisaggregatedSetRoleScaler)
	return scaler, err
}

// Orphans implements Caches.
func (c caches) Orphans(key cache.ObjectName) (list []plan.Orphan, err error) {
	for _, informer := range []*informers.Informer{c.children, c.services, c.scalers} {
		objs, err := informer.ByIndex(indexSet, key.String())
		if err != nil {
			return nil, fmt.Errorf("listing %s that disaggregatedset %s may adopt: %w", informer.Resource.Resource, key, err)
		}
		for _, obj := range objs {
			if orphan := orphanOf(obj); orphan != nil {
				list = append(list, *orphan)
			}
		}
	}
	return list, nil
}

// Former implements Caches.
func (c caches) Former(ds *disaggregatedsetv1.DisaggregatedSet) (bool, error) {
	objs, err := c.children.ByIndex(indexSet, cache.MetaObjectToName(ds).String())
	if err != nil {
		return false, fmt.Errorf("listing leaderworkersets of former disaggregatedsets %s/%s: %w", ds.Namespace, ds.Name, err)
	}
	return slices.ContainsFunc(objs, func(obj any) bool {
		child, ok := obj.(*watched)
		if !ok || child.DeletionTimestamp != nil {
			return false
		}
		owner := ownerOf(child)
		return owner != nil && owner.UID != ds.UID
	}), nil
}

// owned returns what an informer has of the children of a set.
func owned[T metav1.Object](informer *informers.Informer, namespace string, owner types.UID) ([]T, error) {
	objs, err := informer.ByIndex(indexOwner, string(owner))
	if err != nil {
		return nil, fmt.Errorf("listing %s of disaggregatedset %s: %w", informer.Resource.Resource, owner, err)
	}
	var list []T
	for _, obj := range objs {
		if child, ok := obj.(T); ok && child.GetNamespace() == namespace {
			list = append(list, child)
		}
	}
	return list, nil
}
