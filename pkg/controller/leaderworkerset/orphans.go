// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
)

// newOrphans returns what raises an alarm about StatefulSets of leaders whose LeaderWorkerSet the API does not know. StatefulSets of
// workers belong to their leaders.
func (c *Controller) newOrphans() *orphans.Watcher {
	return orphans.NewWatcher(orphans.Config{
		Kind: "LeaderWorkerSet", ChildKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Children: c.caches.ownedStatefulSets,
		Recorder: c.Recorder, Cached: orphans.CachedIn(c.caches.Set),
		Read: func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return c.Sets.LeaderworkersetV1().LeaderWorkerSets(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	})
}

// ownedStatefulSets returns the cached StatefulSets that a LeaderWorkerSet controls and that are not being deleted.
func (c caches) ownedStatefulSets() iter.Seq[orphans.Child] {
	return func(yield func(orphans.Child) bool) {
		for _, obj := range c.statefulSets.List() {
			sts, ok := obj.(*appsv1.StatefulSet)
			if !ok || sts.DeletionTimestamp != nil {
				continue
			}
			owner := metav1.GetControllerOfNoCopy(sts)
			if ofSet(owner) && !yield(orphans.Child{
				Name: sts.Name, UID: sts.UID, Owner: orphans.Owner{Namespace: sts.Namespace, Name: owner.Name, UID: owner.UID},
			}) {
				return
			}
		}
	}
}
