// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics/testutil"
)

func TestQueueTimesAreThoseOfEachQueue(t *testing.T) {
	const text = `# TYPE workqueue_queue_duration_seconds histogram
workqueue_queue_duration_seconds_bucket{name="jobset",le="0.1"} 3
workqueue_queue_duration_seconds_bucket{name="jobset",le="1"} 4
workqueue_queue_duration_seconds_bucket{name="jobset",le="+Inf"} 4
workqueue_queue_duration_seconds_bucket{name="a",le="+Inf"} 0
`
	metrics := testutil.NewMetrics()
	if err := testutil.ParseMetrics(text, &metrics); err != nil {
		t.Fatal(err)
	}
	queues, err := queueTimes(metrics)
	if err != nil {
		t.Fatal(err)
	}
	want := Queues{"a": {math.Inf(1): 0}, "jobset": {0.1: 3, 1: 4, math.Inf(1): 4}}
	if d := cmp.Diff(want, queues); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"a", "jobset"}, queues.Names()); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	if _, err := (&Cluster{}).QueueTimes(t.Context()); !errors.Is(err, ErrNotLocal) {
		t.Errorf("error %v in a cluster of other machines", err)
	}
}

func TestControllersRestWithEmptyQueues(t *testing.T) {
	for name, tc := range map[string]struct {
		before, now work
		want        bool
	}{
		"nothing waits, and nothing was synced since": {work{0, 7}, work{0, 7}, true},
		"an object waits":            {work{0, 7}, work{1, 7}, false},
		"one was synced":             {work{0, 7}, work{0, 8}, false},
		"the controller began again": {work{0, 7}, work{0, 0}, false},
	} {
		if got := tc.now.restsSince(tc.before); got != tc.want {
			t.Errorf("%s: rests %t, want %t", name, got, tc.want)
		}
	}
	metrics := testutil.NewMetrics()
	text := `# TYPE workqueue_depth gauge
workqueue_depth{name="jobset"} 2
workqueue_depth{name="leaderworkerset"} 1
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="jobset",result="success"} 4
controller_runtime_reconcile_total{controller="podgroup",result="error"} 5
`
	if err := testutil.ParseMetrics(text, &metrics); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(work{3, 9}, workOf(metrics), cmp.AllowUnexported(work{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestQuantilesOfHistograms(t *testing.T) {
	inf := math.Inf(1)
	for name, tc := range map[string]struct {
		now, before   Histogram
		count         float64
		p50, p75, p99 float64
	}{
		"nothing":                           {Histogram{1: 0, inf: 0}, nil, 0, 1, 1, 1},
		"spread evenly between two bounds":  {Histogram{1: 0, 2: 100, inf: 100}, nil, 100, 1.5, 1.75, 1.99},
		"without those of before":           {Histogram{1: 50, 2: 100, inf: 100}, Histogram{1: 50, 2: 50, inf: 50}, 50, 1.5, 1.75, 1.99},
		"after a restart":                   {Histogram{1: 0, 2: 100, inf: 100}, Histogram{1: 900, 2: 900, inf: 900}, 100, 1.5, 1.75, 1.99},
		"above the last bound":              {Histogram{1: 50, 2: 50, inf: 100}, nil, 100, 1, 2, 2},
		"bounds that are far from the rest": {Histogram{0.001: 0, 0.01: 0, 0.1: 0, 1: 10, 10: 10, inf: 10}, nil, 10, 0.55, 0.775, 0.991},
	} {
		t.Run(name, func(t *testing.T) {
			since := tc.now.Since(tc.before)
			for share, want := range map[float64]float64{0.5: tc.p50, 0.75: tc.p75, 0.99: tc.p99} {
				if got := since.Quantile(share); math.Abs(got-want) > 1e-9 {
					t.Errorf("quantile %v: %v, want %v", share, got, want)
				}
			}
			if got := since.Count(); got != tc.count {
				t.Errorf("count %v, want %v", got, tc.count)
			}
		})
	}
}
