// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"testing"
	"time"
)

// BenchmarkScale reports the resident memory of our programs with 5,000 JobSets of 20,000 Jobs, and how fast the
// controller came from the sets of the other benchmarks to these. With -short there are fewer.
func BenchmarkScale(b *testing.B) {
	before := prepare(b)
	after, err := scaled()
	if err != nil {
		b.Fatal(err)
	}
	for _, program := range programs {
		b.Run(program, func(b *testing.B) {
			for b.Loop() {
				if _, err := after.cluster.residentBytes(program); err != nil {
					b.Fatal(err)
				}
			}
			idle, loaded := float64(before.idle[program]), float64(after.loaded[program])
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(after.sets), "jobsets")
			b.ReportMetric(float64(after.jobs), "jobs")
			b.ReportMetric(loaded/(1<<20), "MiB")
			b.ReportMetric((loaded-idle)/float64(after.jobs)/(1<<10), "KiB/job")
			b.ReportMetric(float64(after.jobs-2*total)/after.took.Seconds(), "jobs/s")
		})
	}
}

// scale is a situation with more sets and Jobs.
type scale struct {
	*situation
	sets, jobs int
	took       time.Duration
}

// scaled adds sets of four and of six Jobs to those of two that are there, so that there are four for each set.
var scaled = sync.OnceValues(func() (*scale, error) {
	s, err := loaded()
	if err != nil {
		return nil, err
	}
	ofFour, ofSix := 1000, total
	if testing.Short() {
		ofFour, ofSix = 50, 100
	}
	after := &scale{situation: &situation{cluster: s.cluster}, sets: total + ofFour + ofSix, jobs: 2*total + 4*ofFour + 6*ofSix}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	begin := time.Now()
	if err := s.cluster.fill(ctx, batch{"four", ofFour, 4}, batch{"six", ofSix, 6}); err != nil {
		return nil, err
	}
	after.took = time.Since(begin)
	after.loaded, err = s.cluster.memory()
	return after, err
})
