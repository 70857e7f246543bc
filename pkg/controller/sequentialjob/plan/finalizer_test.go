// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// TestFinalizerComesBack: a child is active, and the finalizer is gone: a user removed it, or the child was created late.
func TestFinalizerComesBack(t *testing.T) {
	w := newWorld(t).stabilize().change(func(sj *batchv1alpha1.SequentialJob) { sj.Finalizers = nil })
	w.pass()
	diff(t, "the finalizers", []string{batchv1alpha1.SequentialJobFinalizer}, w.sj.Finalizers)
	w.ends(0, Succeeded).ends(1, Succeeded).ends(2, Succeeded)
	diff(t, "the finalizers in the end", []string(nil), w.sj.Finalizers)
}
