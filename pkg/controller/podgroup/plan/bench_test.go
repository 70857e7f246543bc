// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
)

// BenchmarkDecide decides about a group of which one pod waits, as it does again and again while pods start.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o := observed(append(pods(n-1, ownedBy(job)), pod("last", ownedBy(job), in(Pending)))...).owned(jobOf(int32(n))) //nolint:gosec // a small number
			b.ReportAllocs()
			for b.Loop() {
				if p := Decide(o); p.Ready || len(Needs(o)) != 1 {
					b.Fatal("the group is ready")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/pod")
		})
	}
}
