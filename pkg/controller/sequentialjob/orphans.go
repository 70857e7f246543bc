// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/orphans"
)

// newOrphans returns what raises an alarm about Jobs whose SequentialJob the API does not know.
func (c *Controller) newOrphans() *orphans.Watcher {
	return orphans.NewWatcher(orphans.Config{
		Kind: "SequentialJob", Jobs: c.caches.ownedJobs, Recorder: c.Recorder,
		Cached: func(owner orphans.Owner) bool {
			sj, err := c.caches.SequentialJob(cache.NewObjectName(owner.Namespace, owner.Name))
			return err != nil || sj != nil && sj.UID == owner.UID
		},
		Read: func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return c.Client.BatchV1alpha1().SequentialJobs(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	})
}

// ownedJobs returns the cached Jobs that a SequentialJob controls and that are not being deleted.
func (c caches) ownedJobs() iter.Seq[orphans.Job] {
	return func(yield func(orphans.Job) bool) {
		for _, obj := range c.jobs.List() {
			child, ok := obj.(*watchedChild)
			if !ok || child.Deleting || child.owner == "" {
				continue
			}
			if !yield(orphans.Job{
				Name: child.Name, UID: child.UID, Owner: orphans.Owner{Namespace: child.namespace.Value(), Name: child.sequence, UID: child.owner},
			}) {
				return
			}
		}
	}
}
