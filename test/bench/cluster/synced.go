// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/metrics/testutil"
)

const (
	// jobSetQueue is the name of the controller of JobSets and of its work queue, in the metrics of our program and of upstream's.
	jobSetQueue = "jobset"
	// syncedPoll is how often a controller that was restarted is asked whether it has synced all sets.
	syncedPoll = 100 * time.Millisecond
)

// controllerOfSets is the process that syncs JobSets.
func (c *Cluster) controllerOfSets() string {
	if c.Upstream {
		return upstreamJobSets
	}
	return "jobset-controller"
}

// RestartController stops and starts the controller of JobSets, and returns the time from the start of its process until it has synced so
// many sets. It needs a cluster on this machine.
func (c *Cluster) RestartController(ctx context.Context, sets int, timeout time.Duration) (time.Duration, error) {
	if err := c.Do(ctx, "stop", "controller"); err != nil {
		return 0, err
	}
	started := make(chan error, 1)
	go func() { started <- c.Do(ctx, "start", "controller") }()
	synced, err := c.untilSynced(ctx, sets, timeout)
	if err := errors.Join(err, <-started); err != nil {
		return 0, err
	}
	began, err := c.Began(c.controllerOfSets())
	return synced.Sub(began), err
}

// untilSynced returns when the controller showed in its metrics that it has synced so many sets.
func (c *Cluster) untilSynced(ctx context.Context, sets int, timeout time.Duration) (time.Time, error) {
	var last error
	err := wait.PollUntilContextTimeout(ctx, syncedPoll, timeout, true, func(ctx context.Context) (bool, error) {
		metrics, err := c.Metrics(ctx, c.controllerOfSets())
		if last = err; err != nil {
			return false, nil // it does not serve them yet
		}
		return hasSynced(metrics, sets), nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("waiting until %s has synced %d JobSets: %w", c.controllerOfSets(), sets, errors.Join(err, last))
	}
	return time.Now(), nil
}

// hasSynced reports that so many JobSets or more were synced, that none waits, and that none is being synced.
func hasSynced(metrics testutil.Metrics, sets int) bool {
	sum := func(metric string, name func(labels testutil.Metric) testutil.LabelValue) (sum float64) {
		for _, sample := range metrics[metric] {
			if name(sample.Metric) == jobSetQueue {
				sum += float64(sample.Value)
			}
		}
		return sum
	}
	controller := func(labels testutil.Metric) testutil.LabelValue { return labels["controller"] }
	queue := func(labels testutil.Metric) testutil.LabelValue { return labels["name"] }
	return sum("controller_runtime_reconcile_total", controller) >= float64(sets) &&
		sum("workqueue_depth", queue) == 0 && sum("controller_runtime_active_workers", controller) == 0
}
