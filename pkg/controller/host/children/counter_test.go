// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"testing"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
)

func TestOwnerCounterIsBounded(t *testing.T) {
	c := NewOwnerCounter("bounded_total", "Help.", "owner_name")
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(c.CounterVec)
	for i := range MaxSeries + 5 {
		c.Count(cache.NewObjectName("ns", fmt.Sprint("owner-", i)))
	}
	metrics, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(metrics[0].Metric); got != MaxSeries {
		t.Errorf("%d series, want %d", got, MaxSeries)
	}
}
