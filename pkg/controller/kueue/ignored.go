// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// IgnoredQueue returns the queue that an object names and that no queueing system reads, to be reported once for each
// object; reported are the UIDs of those for which it was. It is empty unless the cluster is known to have no Kueue.
// Unless the object runs despite its queue, Kueue is not looked for.
func IgnoredQueue(ctx context.Context, availability func(ctx context.Context) Availability, reported *children.Notes[types.UID],
	object metav1.Object, runs bool) string {
	key := cache.MetaObjectToName(object)
	if availability == nil || !runs || reported.Noted(key) == object.GetUID() || availability(ctx) != Absent {
		return ""
	}
	reported.Note(key, object.GetUID())
	return object.GetLabels()[jobsetv1alpha2.QueueNameKey]
}
