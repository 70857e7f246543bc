// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// runBeside starts a set with exclusive placement. Our controller gives each Job its rack. Upstream's webhooks let the scheduler find a rack for
// the first pod of each Job, and refuse the other pods until then.
func (p *placing) runBeside(ctx context.Context) error {
	for n := range p.Runs {
		p.Log("%s: run %d", p.to.Name, p.to.Runs+n+1)
		if err := p.inSpace(ctx, watchedAll, false, p.startScheduled); err != nil {
			return err
		}
	}
	return nil
}

// startScheduled is done when all pods are scheduled. Then it waits until they are ready, and checks that each Job has a rack of its own.
func (p *placing) startScheduled(ctx context.Context, s *space) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	pods, err := s.watchPods(watching)
	if err != nil {
		return err
	}
	jobs, each := s.Sizes.placedJobs(), s.Sizes.PlacePods
	phase, err := s.measure(ctx, report.Placed, func(ctx context.Context) error {
		if err := s.createSet(ctx, s.placedSet(placeExclusive, jobs, each)); err != nil {
			return err
		}
		return pods.until(ctx, "all pods are scheduled", jobs*each, podScheduled)
	})
	if err != nil {
		return err
	}
	phase.Add("pods per second", report.UnitRate, float64(jobs*each)/phase.Last("wall"))
	if err := s.untilPlaced(ctx, jobs, each, 0); err != nil {
		return err
	}
	return p.check(ctx, s, placeExclusive)
}

func podScheduled(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}
