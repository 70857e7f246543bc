// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import "testing"

// BenchmarkMemory reports the resident memory of our programs before the first JobSet and with all of them.
func BenchmarkMemory(b *testing.B) {
	s := prepare(b)
	for _, program := range programs {
		b.Run(program, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.cluster.residentBytes(program); err != nil {
					b.Fatal(err)
				}
			}
			idle, loaded := float64(s.idle[program]), float64(s.loaded[program])
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(idle/(1<<20), "idle-MiB")
			b.ReportMetric(loaded/(1<<20), "loaded-MiB")
			b.ReportMetric(loaded/idle, "loaded/idle")
			b.ReportMetric((loaded-idle)/total/(1<<10), "KiB/jobset")
		})
	}
}
