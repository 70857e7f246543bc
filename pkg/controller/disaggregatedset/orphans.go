// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
)

// newOrphans returns what raises an alarm about children whose DisaggregatedSet the API does not know.
func (c *Controller) newOrphans() *orphans.Watcher {
	owned := orphans.Owned(ownerOf)
	return orphans.NewWatcher(orphans.Config{
		Kind: "DisaggregatedSet", Recorder: c.Recorder, Cached: orphans.CachedIn(c.caches.Set),
		Sources: []orphans.Source{
			orphans.Cached(leaderworkersetv1.SchemeGroupVersion.WithKind("LeaderWorkerSet"), c.caches.children.List, owned),
			orphans.Cached(corev1.SchemeGroupVersion.WithKind("Service"), c.caches.services.List, owned),
			orphans.Cached(disaggregatedsetv1.SchemeGroupVersion.WithKind("DisaggregatedSetRoleScaler"), c.caches.scalers.List, owned),
		},
		Read: func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return c.Client.DisaggregatedsetV1().DisaggregatedSets(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	})
}
