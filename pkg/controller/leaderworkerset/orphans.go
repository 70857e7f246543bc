// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
)

// newOrphans returns what raises an alarm about children whose LeaderWorkerSet the API does not know. StatefulSets of workers, and the
// Services of groups, belong to their leaders.
func (c *Controller) newOrphans() *orphans.Watcher {
	sources := []orphans.Source{
		orphans.Cached(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), c.caches.statefulSets.List, childOfSet),
		orphans.Cached(corev1.SchemeGroupVersion.WithKind("Service"), c.caches.services.List, childOfSet),
		orphans.Cached(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), c.caches.revisions.List, childOfSet),
	}
	if c.caches.podGroups != nil {
		kind := c.Gang.Resource().GroupVersion().WithKind("PodGroup")
		sources = append(sources, orphans.Cached(kind, c.caches.podGroups.List, childOfSet))
	}
	return orphans.NewWatcher(orphans.Config{
		Kind: kindSet, Sources: sources, Recorder: c.Recorder, Cached: orphans.CachedIn(c.caches.Set),
		Read: func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return c.Sets.LeaderworkersetV1().LeaderWorkerSets(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	})
}

// childOfSet returns what the cache keeps of a child that a LeaderWorkerSet controls and that is not being deleted.
func childOfSet(obj any) (orphans.Child, bool) {
	if kept, ok := obj.(*watchedRef); ok {
		if kept.owner == "" {
			return orphans.Child{}, false
		}
		return orphans.Child{Name: kept.name, UID: kept.uid, Owner: orphans.Owner{Namespace: kept.namespace.Value(), Name: kept.owner,
			UID: kept.controller}}, true
	}
	return orphans.Owned(func(child metav1.Object) *metav1.OwnerReference {
		if owner := metav1.GetControllerOfNoCopy(child); ofSet(owner) {
			return owner
		}
		return nil
	})(obj)
}
