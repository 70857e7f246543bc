// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"iter"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
)

// newOrphans returns what raises an alarm about Jobs whose JobSet the API does not know.
func (c *Controller) newOrphans() *orphans.Watcher {
	return orphans.NewWatcher(orphans.Config{
		Kind: "JobSet", ChildKind: batchv1.SchemeGroupVersion.WithKind("Job"), Children: c.caches.ownedJobs, Recorder: c.Recorder,
		Cached: orphans.CachedIn(c.caches.JobSet),
		Read: func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return c.JobSets.JobsetV1alpha2().JobSets(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	})
}

// ownedJobs returns the cached Jobs that a JobSet controls and that are not being deleted.
func (c caches) ownedJobs() iter.Seq[orphans.Child] {
	return func(yield func(orphans.Child) bool) {
		for _, obj := range c.jobs.List() {
			job, ok := obj.(*batchv1.Job)
			if !ok || job.DeletionTimestamp != nil {
				continue
			}
			owner := jobSetOwner(job)
			if owner != nil && !yield(orphans.Child{
				Name: job.Name, UID: job.UID, Owner: orphans.Owner{Namespace: job.Namespace, Name: owner.Name, UID: owner.UID},
			}) {
				return
			}
		}
	}
}
