// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// restartParts restarts bare Jobs and then a set of as many Jobs, and measures when each Job passes each step of its
// restart. Both are watched in the same way, with their pods.
func restartParts(ctx context.Context, r *runner) error {
	return r.each(ctx, watchedAll, func(ctx context.Context, s *space) error {
		if err := s.startBare(ctx); err != nil {
			return err
		}
		if err := s.timeRestart(ctx, "restart of bare Jobs", notAtAll, s.restartBare); err != nil {
			return err
		}
		return r.inSpace(ctx, watchedAll, false, func(ctx context.Context, s *space) error {
			n := s.Sizes.Jobs
			if err := s.startSet(ctx, "start of the set", n); err != nil {
				return err
			}
			failing := func(ctx context.Context) error {
				return errors.Join(s.failOnePod(ctx), s.jobs.untilAny(ctx, "a Job has failed", isFailing))
			}
			return s.timeRestart(ctx, "restart of the set", failing, func(ctx context.Context) error { return s.untilReady(ctx, n, 1) })
		})
	})
}

// notAtAll is the failure of bare Jobs: whoever restarts them does so unasked.
func notAtAll(context.Context) error { return nil }

// step is one of a restart.
type step int

const (
	deletionAccepted step = iota
	podGone
	jobGone
	jobCreated
	readyAgain
	steps
)

// stepNames say what each step ends with.
var stepNames = [steps]string{"its deletion is accepted", "its pod is gone", "it is gone", "it is created again", "it is ready again"}

// restartTimes are when Jobs passed the steps, by name.
type restartTimes struct {
	mu     sync.Mutex
	stored time.Time
	jobs   map[string]*[steps]time.Time
}

// pass notes when a Job first passes a step.
func (t *restartTimes) pass(job string, at step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	times := t.jobs[job]
	if times == nil {
		times = &[steps]time.Time{}
		t.jobs[job] = times
	}
	if times[at].IsZero() {
		times[at] = time.Now()
	}
}

// timeRestart measures a restart, and its parts from when the failing Job shows its failure. A failure is not part of
// the restart of bare Jobs.
func (s *space) timeRestart(ctx context.Context, name string, fail, restart func(ctx context.Context) error) error {
	times := &restartTimes{jobs: map[string]*[steps]time.Time{}}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := s.watchSteps(watching, times); err != nil {
		return err
	}
	s.sets.onShown(times.noteStored)
	defer s.sets.onShown(nil)
	var begin time.Time
	var took time.Duration
	phase, err := s.measure(ctx, name, func(ctx context.Context) error {
		if err := fail(ctx); err != nil {
			return err
		}
		begin = time.Now()
		err := restart(ctx)
		took = time.Since(begin)
		return err
	})
	if err != nil {
		return err
	}
	phase.Add("wall from the failure of the Job", report.UnitSeconds, took.Seconds())
	return times.addTo(phase, begin, s.Sizes.Jobs)
}

// watchSteps notes what happens to the Jobs that exist, to their pods, and to the Jobs that replace them.
func (s *space) watchSteps(ctx context.Context, times *restartTimes) error {
	kube := informers.NewSharedInformerFactoryWithOptions(s.Cluster.Kube, 0, informers.WithNamespace(s.name))
	jobs, err := newTracker[*batchv1.Job](ctx, kube.Batch().V1().Jobs().Informer(), s.Timeout)
	if err != nil {
		return fmt.Errorf("watching Jobs: %w", err)
	}
	pods, err := newTracker[*corev1.Pod](ctx, kube.Core().V1().Pods().Informer(), s.Timeout)
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	old := jobs.uids()
	jobs.onShown(func(job *batchv1.Job) {
		switch {
		case old[job.UID] && job.DeletionTimestamp != nil:
			times.pass(job.Name, deletionAccepted)
		case !old[job.UID]:
			times.pass(job.Name, jobCreated)
			if isReady(job) {
				times.pass(job.Name, readyAgain)
			}
		}
	})
	jobs.onGone(func(job *batchv1.Job) { times.pass(job.Name, jobGone) })
	pods.onGone(func(pod *corev1.Pod) { times.pass(pod.Labels[batchv1.JobNameLabel], podGone) })
	return nil
}

func (t *restartTimes) noteStored(js *jobsetv1alpha2.JobSet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if js.Status.Restarts > 0 && t.stored.IsZero() {
		t.stored = time.Now()
	}
}

// addTo adds when the first, the middle and the last Job passed each step, and how long each step took a Job after the one before it.
func (t *restartTimes) addTo(phase *report.Phase, begin time.Time, jobs int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stored.IsZero() {
		phase.Add("until the restart is stored", report.UnitSeconds, t.stored.Sub(begin).Seconds())
	}
	for at := range steps {
		var since, took []float64
		for _, times := range t.jobs {
			if times[at].IsZero() {
				continue
			}
			since = append(since, times[at].Sub(begin).Seconds())
			if at > 0 && !times[at-1].IsZero() {
				took = append(took, times[at].Sub(times[at-1]).Seconds())
			}
		}
		if len(since) != jobs {
			return fmt.Errorf("%d of %d Jobs were seen when %s", len(since), jobs, stepNames[at])
		}
		for _, percent := range []float64{0, 50, 100} {
			phase.Add(fmt.Sprintf("until %s: %s", stepNames[at], ranks[percent]), report.UnitSeconds, report.Percentile(since, percent))
		}
		if at > 0 {
			phase.Add(fmt.Sprintf("step of a Job until %s: median", stepNames[at]), report.UnitSeconds, report.Percentile(took, 50))
			phase.Add(fmt.Sprintf("step of a Job until %s: p99", stepNames[at]), report.UnitSeconds, report.Percentile(took, 99))
		}
	}
	return nil
}

// ranks are the names of percentiles of Jobs in the order of time.
var ranks = map[float64]string{0: "first Job", 50: "median", 100: "last Job"}
