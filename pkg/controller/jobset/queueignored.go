// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"

	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
)

// ignoredQueue returns the queue that a set names and that no queueing system reads, to be reported once for each set. It is empty unless
// the cluster is known to have no Kueue. For sets without a queue, Kueue is not looked for.
func (s *Syncer) ignoredQueue(ctx context.Context, js *jobsetv1alpha2.JobSet) string {
	key := cache.MetaObjectToName(js)
	if s.deps.Kueue == nil || !plan.RunsDespiteQueue(js) || s.queueReported.Noted(key) == js.UID || s.deps.Kueue(ctx) != kueue.Absent {
		return ""
	}
	s.queueReported.Note(key, js.UID)
	return js.Labels[jobsetv1alpha2.QueueNameKey]
}
