// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// Answer adds what a decision asks for: why groups failed that are about to be recreated.
func (k loopKind) Answer(_ context.Context, obs *plan.Observed, p plan.Plan) error {
	obs.Causes = make(map[types.UID]hostplan.Known[*jobsetv1alpha2.FailureCause], len(p.Asks.Causes))
	for _, m := range p.Asks.Causes {
		obs.Causes[m.Leader] = k.firstCause(obs.Set.Name, m)
	}
	return nil
}

// firstCause returns why a group failed. It is unknown unless the watch of pods has shown it: a process that has just
// started has seen nothing of pods that are gone.
func (s *Syncer) firstCause(leaders string, m plan.MissingCause) hostplan.Known[*jobsetv1alpha2.FailureCause] {
	first, statefulSet := s.deps.Caches.FirstFailure(m.Leader), leaders
	if m.Workers != "" {
		if other := s.deps.Caches.FirstFailure(m.Workers); other != nil && helper.FirstFailure(first, other) == other {
			first, statefulSet = other, m.Name
		}
	}
	if first == nil {
		return hostplan.NotObtained[*jobsetv1alpha2.FailureCause]()
	}
	return hostplan.Of(helper.FirstCause(statefulSet, batchv1.JobCondition{}, first))
}
