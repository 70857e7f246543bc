// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/component-base/metrics/testutil"
)

// Queues are the times that keys have waited in each work queue of jobset-controller since it began, by the name of the queue.
type Queues map[string]Histogram

// QueueTimes reads them. It needs a cluster on this machine.
func (c *Cluster) QueueTimes(ctx context.Context) (Queues, error) {
	if c.Dir == "" {
		return nil, fmt.Errorf("reading the metrics of jobset-controller: %w", ErrNotLocal)
	}
	metrics, err := c.Metrics(ctx, "jobset-controller")
	if err != nil {
		return nil, err
	}
	return queueTimes(metrics)
}

func queueTimes(metrics testutil.Metrics) (Queues, error) {
	queues := Queues{}
	for _, sample := range metrics["workqueue_queue_duration_seconds_bucket"] {
		name := string(sample.Metric["name"])
		bound, err := strconv.ParseFloat(string(sample.Metric["le"]), 64)
		if err != nil {
			return nil, fmt.Errorf("reading the times of the queue %s: %w", name, err)
		}
		if queues[name] == nil {
			queues[name] = Histogram{}
		}
		queues[name][bound] += float64(sample.Value)
	}
	return queues, nil
}

// Names returns the names of the queues in their order.
func (q Queues) Names() []string { return slices.Sorted(maps.Keys(q)) }

// Histogram has the number of values up to each upper bound, of which the last is infinite.
type Histogram map[float64]float64

// Since returns the values that have come after an earlier reading. One that counted more was of a process before a restart.
func (h Histogram) Since(before Histogram) Histogram {
	if before.Count() > h.Count() {
		return h
	}
	since := Histogram{}
	for bound, n := range h {
		since[bound] = n - before[bound]
	}
	return since
}

// Count returns the number of all values.
func (h Histogram) Count() float64 { return h[math.Inf(1)] }

// Quantile returns the value below which a share of all values is, as if those between two bounds were spread evenly.
// Of values above the last finite bound, it returns that bound.
func (h Histogram) Quantile(share float64) float64 {
	wanted, below, under := share*h.Count(), 0.0, 0.0
	for _, bound := range slices.Sorted(maps.Keys(h)) {
		n := h[bound]
		switch {
		case math.IsInf(bound, 1):
			return below
		case n < wanted || n == under:
			below, under = bound, n
		default:
			return below + (bound-below)*(wanted-under)/(n-under)
		}
	}
	return below
}

// Syncs returns how often one of the controllers of jobset-controller has looked at an object since it began. It needs
// a cluster on this machine.
func (c *Cluster) Syncs(ctx context.Context, controller string) (float64, error) {
	if c.Dir == "" {
		return 0, fmt.Errorf("reading the metrics of jobset-controller: %w", ErrNotLocal)
	}
	metrics, err := c.Metrics(ctx, "jobset-controller")
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, sample := range metrics["controller_runtime_reconcile_total"] {
		if string(sample.Metric["controller"]) == controller {
			sum += float64(sample.Value)
		}
	}
	return sum, nil
}

// work is what the controllers of sets have to do, and have done since their processes began.
type work struct{ waiting, synced float64 }

func workOf(metrics testutil.Metrics) (w work) {
	for _, sample := range metrics["workqueue_depth"] {
		w.waiting += float64(sample.Value)
	}
	for _, sample := range metrics["controller_runtime_reconcile_total"] {
		w.synced += float64(sample.Value)
	}
	return w
}

// restsSince reports that nothing waits, and that nothing was done since an earlier look.
func (w work) restsSince(before work) bool { return w.waiting == 0 && w == before }

// work reads it, of jobset-controller or of upstream's controllers. Where none runs, there is none.
func (c *Cluster) work(ctx context.Context) (sum work) {
	programs := []string{"jobset-controller"}
	if c.Upstream {
		programs = c.upstreamPrograms()
	}
	for _, program := range programs {
		metrics, err := c.Metrics(ctx, program)
		if err != nil {
			continue
		}
		of := workOf(metrics)
		sum.waiting, sum.synced = sum.waiting+of.waiting, sum.synced+of.synced
	}
	return sum
}
