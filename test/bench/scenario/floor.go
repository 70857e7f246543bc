// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// floor is what Kubernetes itself needs for as many Jobs as there are in the set of big, and in the sets of run: the least
// that sets can cost.
func floor(ctx context.Context, r *runner) error { return bare(ctx, r, false) }

// labeledJobs is the same for Jobs with as many labels and annotations as Jobs of sets have. It separates the cost of this
// metadata from the cost of the rest of a set.
func labeledJobs(ctx context.Context, r *runner) error { return bare(ctx, r, true) }

func bare(ctx context.Context, r *runner, labeled bool) error {
	err := r.each(ctx, watchedAll, func(ctx context.Context, s *space) error {
		s.labeled = labeled
		if err := s.startBare(ctx); err != nil {
			return err
		}
		_, err := r.measure(ctx, "restart", s.restartBare)
		return err
	})
	if err != nil {
		return err
	}
	return r.each(ctx, watchedAll, func(ctx context.Context, s *space) error {
		s.labeled = labeled
		_, err := r.measure(ctx, "until completed", s.completeBare)
		return err
	})
}

func (s *space) startBare(ctx context.Context) error {
	var created time.Duration
	phase, err := s.measure(ctx, "start", func(ctx context.Context) error {
		begin := time.Now()
		if err := all(ctx, s.Sizes.Jobs, parallel, func(i int) error { return s.createJob(ctx, jobName(i), running) }); err != nil {
			return err
		}
		created = time.Since(begin)
		return s.jobs.until(ctx, "all Jobs are ready", s.Sizes.Jobs, isReady)
	})
	if err != nil {
		return err
	}
	phase.Add("wall until all Jobs are created", report.UnitSeconds, created.Seconds())
	return nil
}

// completeBare does what run does, without sets.
func (s *space) completeBare(ctx context.Context) error {
	n := s.Sizes.RunSets * s.Sizes.RunJobs
	if err := all(ctx, n, s.Sizes.Clients, func(i int) error { return s.createJob(ctx, jobName(i), succeeding) }); err != nil {
		return err
	}
	return s.jobs.until(ctx, "all Jobs are completed", n, isComplete)
}

// restartBare does what a restart does: it deletes all Jobs in the foreground and creates each again once its name is
// free.
func (s *space) restartBare(ctx context.Context) error {
	// The buffers have room for all Jobs, so that no sender waits.
	free, created := make(chan string, s.Sizes.Jobs), make(chan error, s.Sizes.Jobs)
	s.jobs.onGone(func(job *batchv1.Job) { free <- job.Name })
	defer s.jobs.onGone(nil)
	jobs := s.Cluster.Kube.BatchV1().Jobs(s.name)
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	for range parallel {
		go func() {
			for {
				select {
				case name := <-free:
					created <- s.createJob(ctx, name, running)
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	foreground := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}
	err := all(ctx, s.Sizes.Jobs, parallel, func(i int) error { return jobs.Delete(ctx, jobName(i), foreground) })
	if err != nil {
		return err
	}
	for range s.Sizes.Jobs {
		select {
		case err := <-created:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.jobs.until(ctx, "all Jobs are ready", s.Sizes.Jobs, isReady)
}
