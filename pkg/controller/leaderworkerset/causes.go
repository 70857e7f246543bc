// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// observeCauses adds why groups failed that are about to be recreated, as far as the watch of pods has shown it.
func (s *Syncer) observeCauses(obs *plan.Observed) {
	missing := plan.MissingCauses(*obs)
	if len(missing) == 0 {
		return
	}
	obs.Causes = make(map[types.UID]*jobsetv1alpha2.FailureCause, len(missing))
	for _, m := range missing {
		first, statefulSet := s.deps.Caches.FirstFailure(m.Leader), obs.Set.Name
		if m.Workers != "" {
			if other := s.deps.Caches.FirstFailure(m.Workers); other != nil && helper.FirstFailure(first, other) == other {
				first, statefulSet = other, m.Name
			}
		}
		if first != nil {
			obs.Causes[m.Leader] = helper.FirstCause(statefulSet, batchv1.JobCondition{}, first)
		}
	}
}
