// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// Answer adds what a decision asks for. If something cannot be read, nothing is decided, so that no Jobs are about to be created.
func (k loopKind) Answer(ctx context.Context, obs *plan.Observed, p plan.Plan) error {
	for _, add := range []func(context.Context, *plan.Observed, *plan.Asks) error{
		k.answerPods, k.answerRestored, k.answerFailures, k.answerDomains, k.answerMoves,
	} {
		if err := add(ctx, obs, &p.Asks); err != nil {
			k.backlogs.release(cache.MetaObjectToName(obs.JobSet))
			return err
		}
	}
	return nil
}

// answerPods adds what pods say: which Jobs find no room, how far pods that restart in place have come, and what failed in the first one.
func (s *Syncer) answerPods(_ context.Context, obs *plan.Observed, asks *plan.Asks) error {
	if asks.ShutOut {
		jobs, err := s.deps.Caches.ShutOut(cache.MetaObjectToName(obs.JobSet))
		if err != nil {
			return err
		}
		obs.ShutOut = hostplan.Of(jobs)
	}
	if asks.InPlace {
		obs.InPlace = hostplan.Of(s.deps.Caches.InPlace(obs.Jobs))
	}
	if first := asks.FirstInPlace; first != nil {
		failure, err := s.deps.Caches.PodFailure(cache.NewObjectName(obs.JobSet.Namespace, first.Pod))
		if err != nil {
			return err
		}
		obs.FailedInPlace = hostplan.NotObtained[*jobsetv1alpha2.FailureCause]()
		if failure != nil {
			obs.FailedInPlace = hostplan.Of(helper.FirstCause(first.Job, batchv1.JobCondition{}, failure))
		}
	}
	return nil
}

// answerRestored adds what became of the set if the store was restored from a backup.
func (s *Syncer) answerRestored(ctx context.Context, obs *plan.Observed, asks *plan.Asks) error {
	if !asks.Restored {
		return nil
	}
	state, err := s.deps.Restore(ctx, obs.JobSet)
	if err != nil {
		return err
	}
	obs.Restored = state.Known()
	return nil
}

// answerFailures adds why a Job failed, which may be read from the API, and the number of nodes.
func (s *Syncer) answerFailures(ctx context.Context, obs *plan.Observed, asks *plan.Asks) error {
	if asks.FirstCause != nil {
		cause := s.deps.FirstCause(ctx, obs.JobSet.Namespace, *asks.FirstCause)
		obs.Cause = hostplan.Obtained(cause, cause != nil)
	}
	if asks.Nodes {
		nodes := 0
		if s.deps.Nodes != nil {
			nodes = s.deps.Nodes(ctx)
		}
		obs.Nodes = hostplan.Obtained(nodes, nodes > 0)
	}
	return nil
}
