// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
)

// newOrphans returns what raises an alarm about children whose SequentialJob the API does not know.
func (c *Controller) newOrphans() *orphans.Watcher {
	return orphans.NewWatcher(orphans.Config{
		Kind: "SequentialJob", Recorder: c.Recorder, Cached: orphans.CachedIn(c.caches.SequentialJob),
		Sources: []orphans.Source{
			orphans.Cached(batchv1.SchemeGroupVersion.WithKind("Job"), c.caches.jobs.List, childOfSequence),
			orphans.Cached(jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"), c.caches.jobSets.List, childOfSequence),
			orphans.Cached(kueue.GroupVersion.WithKind("Workload"), c.queues.List, orphans.Owned(sequenceOf)),
		},
		Read: func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return c.Client.BatchV1alpha1().SequentialJobs(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	})
}

// childOfSequence returns what the cache keeps of a child that a SequentialJob controls and that is not being deleted.
func childOfSequence(obj any) (orphans.Child, bool) {
	child, ok := obj.(*watchedChild)
	if !ok || child.Deleting || child.owner == "" {
		return orphans.Child{}, false
	}
	return orphans.Child{Name: child.Name, UID: child.UID, Owner: orphans.Owner{Namespace: child.namespace.Value(), Name: child.sequence,
		UID: child.owner}}, true
}
