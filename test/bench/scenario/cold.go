// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// cold starts our server with many sets in its store.
func cold(ctx context.Context, r *runner) error {
	if r.Cluster.Dir == "" {
		r.Log("cold: left out: %v", cluster.ErrNotLocal)
		return nil
	}
	return r.inSpace(ctx, unwatched, true, func(ctx context.Context, s *space) error {
		if err := s.store(ctx, 0, s.Sizes.ColdSets); err != nil {
			return err
		}
		for range s.Runs {
			if err := s.startCold(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// startCold measures from the start of the process. The script that starts it does more, which does not count.
func (s *space) startCold(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	window, err := s.meter.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Cluster.Do(context.WithoutCancel(ctx), "start", "apiserver"))
		}
	}()
	if err := s.Cluster.Do(ctx, "stop", "apiserver"); err != nil {
		return err
	}
	if err := s.Cluster.UntilAvailable(ctx, false); err != nil {
		return fmt.Errorf("waiting until kube-apiserver has noticed that the server is gone: %w", err)
	}
	ready, available, err := s.startServer(ctx)
	if err != nil {
		return err
	}
	begin, err := s.Cluster.Began("jobset-apiserver")
	if err != nil {
		return err
	}
	phase := s.to.Phase("start")
	phase.Add("from the start of the process until ready", report.UnitSeconds, ready.Sub(begin).Seconds())
	window.Took(available.Sub(begin))
	s.Log("cold: available after %.2fs", available.Sub(begin).Seconds())
	return window.End(ctx, phase)
}

// startServer returns when the server was ready, and when kube-apiserver knew.
func (s *space) startServer(ctx context.Context) (ready, available time.Time, err error) {
	started := make(chan error, 1)
	go func() { started <- s.Cluster.Do(ctx, "start", "apiserver") }()
	if err := s.Cluster.UntilReady(ctx); err != nil {
		return ready, available, errors.Join(fmt.Errorf("waiting until jobset-apiserver is ready: %w", err), <-started)
	}
	ready = time.Now()
	// In a cluster with a network, kube-apiserver looks again because the endpoint has become ready.
	if err := s.Cluster.TouchAPIService(ctx); err != nil {
		return ready, available, errors.Join(err, <-started)
	}
	if err := s.Cluster.UntilAvailable(ctx, true); err != nil {
		return ready, available, errors.Join(fmt.Errorf("waiting until the APIService is available: %w", err), <-started)
	}
	available = time.Now()
	return ready, available, <-started
}
