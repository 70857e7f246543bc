// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// big leads one set of many Jobs through its life.
func big(ctx context.Context, r *runner) error {
	return r.each(ctx, watchedAll, func(ctx context.Context, s *space) error {
		n := s.Sizes.Jobs
		if err := s.startSet(ctx, "start", n); err != nil {
			return err
		}
		if err := s.restartSet(ctx, "restart", n); err != nil || s.Short {
			return err
		}
		if _, err := r.measure(ctx, "suspend", s.suspendSet); err != nil {
			return err
		}
		if _, err := r.measure(ctx, "resume", s.resumeSet); err != nil {
			return err
		}
		_, err := r.measure(ctx, "delete", s.deleteSet)
		return err
	})
}

// large is big with more Jobs.
func large(ctx context.Context, r *runner) error { return big(ctx, r.sized(r.Sizes.LargeJobs)) }

// startSet is done when all Jobs are ready and the status shows it. The times of creation and readiness are measured separately.
func (s *space) startSet(ctx context.Context, name string, n int) error {
	var created, ready time.Duration
	phase, err := s.measure(ctx, name, func(ctx context.Context) error {
		begin := time.Now()
		if err := s.createSet(ctx, s.set(setName, n, running)); err != nil {
			return err
		}
		if err := s.jobs.until(ctx, "all Jobs are created", n, anything[*batchv1.Job]); err != nil {
			return err
		}
		created = time.Since(begin)
		if err := s.jobs.until(ctx, "all Jobs are ready", n, isReady); err != nil {
			return err
		}
		ready = time.Since(begin)
		return s.untilReady(ctx, n, 0)
	})
	if err != nil {
		return err
	}
	phase.Add("wall until all Jobs are created", report.UnitSeconds, created.Seconds())
	phase.Add("wall until all Jobs are ready", report.UnitSeconds, ready.Seconds())
	s.addChanges(phase, 0, 1)
	return s.addStored(ctx, phase, s.name)
}

func (s *space) untilReady(ctx context.Context, n, restarts int) error {
	if err := s.jobs.until(ctx, "all Jobs are ready", n, inAttempt(fmt.Sprint(restarts))); err != nil {
		return err
	}
	return s.sets.until(ctx, "the status shows all Jobs as ready", 1, showsJobs(n, 0, restarts))
}

// restartSet measures from the moment when a pod fails. How long it takes until its Job shows that is up to the Job
// controller, and is told apart.
func (s *space) restartSet(ctx context.Context, name string, n int) error {
	var noticing time.Duration
	before := s.sets.seenUpdates()
	phase, err := s.measure(ctx, name, func(ctx context.Context) error {
		begin := time.Now()
		if err := s.failOnePod(ctx); err != nil {
			return err
		}
		if err := s.jobs.untilAny(ctx, "a Job has failed", isFailing); err != nil {
			return err
		}
		noticing = time.Since(begin)
		return s.untilReady(ctx, n, 1)
	})
	if err != nil {
		return err
	}
	phase.Add("wall until the Job shows the failure", report.UnitSeconds, noticing.Seconds())
	phase.Add("wall from the failure of the Job", report.UnitSeconds, phase.Last("wall")-noticing.Seconds())
	s.addChanges(phase, before, 1)
	return nil
}

func (s *space) suspendSet(ctx context.Context) error {
	if err := s.patchSet(ctx, setName, `{"spec":{"suspend":true}}`); err != nil {
		return err
	}
	if err := s.jobs.until(ctx, "all Jobs have stopped", s.Sizes.Jobs, isStopped); err != nil {
		return err
	}
	return s.sets.until(ctx, "the status shows all Jobs as suspended", 1, showsJobs(0, s.Sizes.Jobs, 1))
}

func (s *space) resumeSet(ctx context.Context) error {
	if err := s.patchSet(ctx, setName, `{"spec":{"suspend":false}}`); err != nil {
		return err
	}
	return s.untilReady(ctx, s.Sizes.Jobs, 1)
}

// deleteSet is done when the set, whose children go first, is gone.
func (s *space) deleteSet(ctx context.Context) error {
	foreground := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}
	if err := s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name).Delete(ctx, setName, foreground); err != nil {
		return err
	}
	return s.sets.until(ctx, "the set is gone", 0, anything[*jobsetv1alpha2.JobSet])
}
