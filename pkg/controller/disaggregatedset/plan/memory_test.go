// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// A set can be large, and have 100 slices. A plan must not hold all of their templates at the same time.
func TestPlansAreSmall(t *testing.T) {
	ds := service(2)
	ds.Spec.Slices = ptr.To[int32](100)
	for i := range ds.Spec.Roles {
		for n := range 5000 {
			pod := &ds.Spec.Roles[i].Spec.LeaderWorkerTemplate.WorkerTemplate
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", n), Image: "i"})
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := Decide(Observed{Set: ds})
	runtime.ReadMemStats(&after)
	if len(p.Slices) != 100 || len(p.Slices[99].Create) != 2 {
		t.Fatalf("%d slices are planned", len(p.Slices))
	}
	const limit = 50 << 20
	if n := after.TotalAlloc - before.TotalAlloc; n > limit {
		t.Errorf("a plan allocates %d MiB, want at most %d", n>>20, limit>>20)
	}
}
