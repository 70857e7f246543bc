// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// observeRefusedPods adds the Jobs whose pods the API refuses, and remembers since when there are any.
func (s *Syncer) observeRefusedPods(obs *plan.Observed) {
	var refused map[types.UID]plan.Refusal
	for _, job := range obs.Jobs {
		refusal := s.deps.Caches.PodRefusal(job.UID, helper.LacksPods(job))
		if refusal == nil {
			continue
		}
		if refused == nil {
			refused = map[types.UID]plan.Refusal{}
		}
		refused[job.UID] = *refusal
	}
	obs.PodsRefusedSince = children.Since(s.podsRefused, cache.MetaObjectToName(obs.JobSet), len(refused) > 0, obs.Now.Time)
	obs.RefusedPods = refused
}
