// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"iter"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
)

// newOrphans returns what raises an alarm about children whose JobSet the API does not know.
func (c *Controller) newOrphans() *orphans.Watcher {
	owned := orphans.Owned(jobSetOwner)
	sources := []orphans.Source{
		orphans.Cached(batchv1.SchemeGroupVersion.WithKind("Job"), c.caches.jobs.List, owned),
		orphans.Cached(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), c.caches.claims.List, owned),
		orphans.Cached(corev1.SchemeGroupVersion.WithKind("Service"), c.caches.services.List, owned),
	}
	if c.groups != nil {
		for _, kind := range c.groups.Kinds {
			sources = append(sources, c.groupsOfLostSets(kind))
		}
	}
	return orphans.NewWatcher(orphans.Config{
		Kind: "JobSet", Sources: sources, Recorder: c.Recorder, Cached: orphans.CachedIn(c.caches.JobSet),
		Read: func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return c.JobSets.JobsetV1alpha2().JobSets(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	})
}

// groupsOfLostSets returns the source of groups of pods, which are not cached while no set asks for them. The first look, at the start,
// does not ask for them: an alarm needs several.
func (c *Controller) groupsOfLostSets(kind gang.Kind) orphans.Source {
	owned, began := orphans.Owned(jobSetOwner), false
	return orphans.Source{
		Kind: c.groups.Versions[0].WithKind(kind.Kind),
		Children: func(ctx context.Context) (iter.Seq[orphans.Child], error) {
			if !began {
				began = true
				return slices.Values([]orphans.Child(nil)), nil
			}
			var found []orphans.Child
			err := c.groups.All(ctx, kind, func(object metav1.Object) {
				if child, ok := owned(object); ok {
					found = append(found, child)
				}
			})
			return slices.Values(found), err
		},
	}
}
