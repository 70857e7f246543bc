// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// BenchmarkDecide decides about sequences whose last step runs, on a snapshot with all answers.
func BenchmarkDecide(b *testing.B) {
	for _, steps := range []int{3, 100} {
		b.Run(fmt.Sprintf("%d steps", steps), func(b *testing.B) {
			o := runningSequence(steps)
			if p := Decide(o); len(p.Questions()) > 0 || p.Status != nil {
				b.Fatalf("the sequence is not at rest: %+v", p)
			}
			b.ReportAllocs()
			for b.Loop() {
				Decide(o)
			}
		})
	}
}

// runningSequence returns what is observed of a sequence whose last step runs.
func runningSequence(steps int) Observed {
	w := newWorld(&testing.T{}, func(sj *batchv1alpha1.SequentialJob) {
		sj.Spec.Containers = nil
		for i := range steps {
			sj.Spec.Containers = append(sj.Spec.Containers, corev1.Container{Name: fmt.Sprint("step-", i), Image: "a"})
		}
	}).stabilize()
	for i := range steps - 1 {
		w.ends(i, Succeeded)
	}
	return w.observed()
}
