// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/failures"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/refusals"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// Resources that are watched.
const (
	resourceSets         = "leaderworkersets"
	resourceStatefulSets = "statefulsets"
	resourcePods         = "pods"
	resourceServices     = "services"
	resourceRevisions    = "controllerrevisions"
	resourcePodGroups    = "podgroups"
)

const (
	// indexSet is the index of children by the name of the set in their label.
	indexSet = "set"
	// indexController is the index of pods by the UID of their controller.
	indexController = "controller"
)

// caches are what a decision is made on. They hold no more of an object than decisions use.
type caches struct {
	sets, statefulSets, pods, services, revisions *informers.Informer
	// podGroups is nil without a scheduler of gangs.
	podGroups *informers.Informer
	// Memory knows why the StatefulSet controller cannot create pods.
	*refusals.Memory
	nodes  *nodes
	losses *Losses
	// failures are the failures of leader pods by their UIDs, and those of worker pods by that of their StatefulSet.
	failures *failures.Store
}

var _ Caches = caches{}

// newCaches declares what LeaderWorkerSets need.
func newCaches(config Config) caches {
	kind, gv := config.Informers, leaderworkersetv1.SchemeGroupVersion
	sets := informers.NewResource(kind.Aggregated(gv), gv.WithResource(resourceSets), &leaderworkersetv1.LeaderWorkerSet{}, config.Sets,
		config.Sets.LeaderworkersetV1().LeaderWorkerSets(metav1.NamespaceAll))
	children := func(resource informers.Resource, index string, of cache.IndexFunc) *informers.Informer {
		return kind.Informer(informers.Need{
			Resource: resource, Label: leaderworkersetv1.SetNameLabelKey, Transform: transform, Indexers: cache.Indexers{index: of},
		})
	}
	c := caches{
		sets:         kind.Informer(informers.Need{Resource: sets, Transform: transform}),
		statefulSets: children(kind.StatefulSets(), indexSet, setOf),
		pods:         children(kind.Pods(), indexController, controllerOf),
		services:     children(kind.Services(), indexSet, setOf),
		revisions:    children(kind.Revisions(), indexSet, setOf),
		nodes:        newNodes(config.Kube), losses: NewLosses(), failures: failures.NewStore(),
		Memory: refusals.New(kind, "StatefulSet", config.Clock),
	}
	if config.Gang != "" {
		need := gang.Need(kind.Main(), config.Dynamic, config.Gang.Resource().GroupVersion(), gang.PodGroups, leaderworkersetv1.SetNameLabelKey)
		c.podGroups = children(need.Resource, indexSet, setOf)
	}
	return c
}

func (c caches) versions() map[string]consistency.Versioned {
	versions := map[string]consistency.Versioned{
		resourceSets: c.sets, resourceStatefulSets: c.statefulSets, resourcePods: c.pods, resourceServices: c.services,
		resourceRevisions: c.revisions,
	}
	if c.podGroups != nil {
		versions[resourcePodGroups] = c.podGroups
	}
	return versions
}

// Set returns the cached set; nil if there is none.
func (c caches) Set(key cache.ObjectName) (*leaderworkersetv1.LeaderWorkerSet, error) {
	return informers.ByKey[leaderworkersetv1.LeaderWorkerSet](c.sets, key)
}

// Leader returns the cached StatefulSet with the name of the set, and whether another owner has a StatefulSet of that name.
func (c caches) Leader(set *leaderworkersetv1.LeaderWorkerSet) (sts *appsv1.StatefulSet, taken bool, err error) {
	obj, err := c.statefulSets.GetByKey(cache.MetaObjectToName(set).String())
	if err != nil || obj == nil {
		return nil, false, err
	}
	sts, ok := obj.(*appsv1.StatefulSet)
	if !ok || !metav1.IsControlledBy(sts, set) {
		return nil, true, nil
	}
	return sts, false, nil
}

// LeaderKey returns the key of status.currentRevision of the StatefulSet of leaders. A StatefulSet gives the labels of its pods to its
// own revisions.
func (c caches) LeaderKey(leader *appsv1.StatefulSet) (key string, known bool) {
	obj, err := c.revisions.GetByKey(cache.NewObjectName(leader.Namespace, leader.Status.CurrentRevision).String())
	own, ok := obj.(*watchedRevision)
	if err != nil || !ok || own.controller != leader.UID {
		return "", false
	}
	return own.revision.Value(), true
}

// Workers returns the cached StatefulSets with the label of the set that pods control, without their pods.
func (c caches) Workers(key cache.ObjectName) ([]plan.Workers, error) {
	return of(c.statefulSets, indexSet, key.String(), func(w *watchedWorkers) (plan.Workers, bool) {
		workers := w.workers
		if w.controlled {
			workers.ResourceVersion = w.resourceVersion()
			c.losses.Fill(&workers)
		}
		return workers, w.controlled
	})
}

// Pods returns the cached pods of a controller.
func (c caches) Pods(controller types.UID) ([]plan.Pod, error) {
	return of(c.pods, indexController, string(controller), func(w *watchedPod) (plan.Pod, bool) { return w.plan(), true })
}

// Services returns the cached Services with the label of the set.
func (c caches) Services(key cache.ObjectName) ([]Child, error) { return childrenOf(c.services, key) }

// PodGroups returns the cached PodGroups with the label of the set.
func (c caches) PodGroups(key cache.ObjectName) ([]Child, error) {
	if c.podGroups == nil {
		return nil, nil
	}
	return childrenOf(c.podGroups, key)
}

func childrenOf(informer *informers.Informer, key cache.ObjectName) ([]Child, error) {
	return of(informer, indexSet, key.String(), func(w *watchedRef) (Child, bool) {
		return Child{Ref: plan.Ref{Name: w.name, UID: w.uid}, Controller: w.controller, OfLeader: w.ofLeader}, true
	})
}

// Revisions returns the cached ControllerRevisions with the label of the set, less those of StatefulSets.
func (c caches) Revisions(key cache.ObjectName) ([]*appsv1.ControllerRevision, error) {
	return of(c.revisions, indexSet, key.String(), func(r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, bool) { return r, true })
}

// Orphans implements Caches.
func (c caches) Orphans(key cache.ObjectName) ([]plan.Orphan, error) {
	workers, err := of(c.statefulSets, indexSet, key.String(), func(w *watchedWorkers) (*plan.Orphan, bool) {
		return w.orphan,
			w.orphan != nil
	})
	if err != nil {
		return nil, err
	}
	services, err := of(c.services, indexSet, key.String(), func(w *watchedRef) (*plan.Orphan, bool) { return w.orphan, w.orphan != nil })
	if err != nil {
		return nil, err
	}
	revisions, err := of(c.revisions, indexSet, key.String(), func(r *appsv1.ControllerRevision) (*plan.Orphan, bool) {
		orphan := plan.OrphanOf(r)
		return orphan, orphan != nil
	})
	if err != nil {
		return nil, err
	}
	var all []plan.Orphan
	for _, orphan := range slices.Concat(workers, services, revisions) {
		all = append(all, *orphan)
	}
	return all, nil
}

// FirstFailure implements Caches.
func (c caches) FirstFailure(uid types.UID) *helper.PodFailure { return c.failures.First(uid) }

// Domain implements Caches.
func (c caches) Domain(node, label string) (domain string, known bool) {
	return c.nodes.domain(node, label)
}

// of returns what is made of the objects of one type for which an index has the value.
func of[T, R any](informer *informers.Informer, index, value string, view func(T) (R, bool)) ([]R, error) {
	objs, err := informer.ByIndex(index, value)
	if err != nil {
		return nil, fmt.Errorf("listing %s of %s %s: %w", informer.Resource.Resource, index, value, err)
	}
	all := make([]R, 0, len(objs))
	for _, obj := range objs {
		if o, ok := obj.(T); ok {
			if seen, wanted := view(o); wanted {
				all = append(all, seen)
			}
		}
	}
	return all, nil
}

// transform drops what no decision uses, so that the caches of a large cluster stay small. It accepts its own results.
func transform(obj any) (any, error) {
	switch o := obj.(type) {
	case *leaderworkersetv1.LeaderWorkerSet:
		o.ManagedFields = nil
	case *appsv1.StatefulSet:
		if owner := metav1.GetControllerOfNoCopy(o); !ofSet(owner) {
			return newWatchedWorkers(o), nil
		}
		plan.KeepOwnership(o)
	case *appsv1.ControllerRevision:
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil && !ofSet(owner) {
			return &watchedRevision{watchedRef: *newWatchedRef(o), revision: handleOf(o.Labels[leaderworkersetv1.RevisionKey])}, nil
		}
		o.ManagedFields = nil
	case *corev1.Pod:
		return newWatchedPod(o), nil
	case *corev1.Service:
		return newWatchedRef(o), nil
	case *unstructured.Unstructured:
		return newWatchedRef(o), nil
	}
	return obj, nil
}

// ofSet returns whether a reference is to a set.
func ofSet(owner *metav1.OwnerReference) bool {
	return owner != nil && owner.Kind == kindSet && owner.APIVersion == leaderworkersetv1.SchemeGroupVersion.String()
}

// setOf indexes a child by the name of the set in its label.
func setOf(obj any) ([]string, error) {
	if key, ok := keyOf(obj); ok {
		return []string{key.String()}, nil
	}
	return nil, fmt.Errorf("indexing by set: %T is no child", obj)
}

// keyOf returns the name of the set that a child belongs to by its label.
func keyOf(obj any) (cache.ObjectName, bool) {
	switch o := obj.(type) {
	case interface{ key() cache.ObjectName }:
		return o.key(), true
	case metav1.Object:
		return cache.NewObjectName(o.GetNamespace(), o.GetLabels()[leaderworkersetv1.SetNameLabelKey]), true
	}
	return cache.ObjectName{}, false
}

// controllerOf indexes a pod by the UID of its controller.
func controllerOf(obj any) ([]string, error) {
	pod, ok := obj.(*watchedPod)
	if !ok {
		return nil, fmt.Errorf("indexing by controller: %T is no pod", obj)
	}
	return []string{pod.controller.Value()}, nil
}
