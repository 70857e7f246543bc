// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"

	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// ignoredQueue returns the queue that a set names and that no queueing system reads, to be reported once for each set. It is empty unless
// the cluster is known to have no Kueue. For sets without a queue, Kueue is not looked for.
func (s *Syncer) ignoredQueue(ctx context.Context, obs *plan.Observed) string {
	key := cache.MetaObjectToName(obs.Set)
	if s.deps.Kueue == nil || !plan.RunsDespiteQueue(*obs) || s.queueReported.Noted(key) == obs.Set.UID || s.deps.Kueue(ctx) != kueue.Absent {
		return ""
	}
	s.queueReported.Note(key, obs.Set.UID)
	return obs.Set.Labels[jobsetv1alpha2.QueueNameKey]
}
