// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// BenchmarkDecide decides about sets of 1000 Jobs.
func BenchmarkDecide(b *testing.B) {
	const jobs = 1000
	var running []*batchv1.Job
	for i := range jobs {
		running = append(running, jobNamed("w", i, ready))
	}
	for name, o := range map[string]Observed{
		"running": observe(newSet(with("w", jobs)), running...),
		"created": observe(newSet(with("w", jobs))),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Decide(o)
			}
		})
	}
}
