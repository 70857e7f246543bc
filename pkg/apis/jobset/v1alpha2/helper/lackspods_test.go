// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestLacksPods(t *testing.T) {
	for name, tc := range map[string]struct {
		job  batchv1.Job
		want bool
	}{
		"no pods yet":            {batchv1.Job{}, true},
		"its pod":                {batchv1.Job{Status: batchv1.JobStatus{Active: 1}}, false},
		"too few":                {batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](3)}, Status: batchv1.JobStatus{Active: 2}}, true},
		"the rest has succeeded": {batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](3), Completions: ptr.To[int32](3)}, Status: batchv1.JobStatus{Active: 1, Succeeded: 2}}, false},
		"the others finish":      {batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](3)}, Status: batchv1.JobStatus{Active: 1, Succeeded: 2}}, false},
		"suspended":              {batchv1.Job{Spec: batchv1.JobSpec{Suspend: ptr.To(true)}}, false},
		"being deleted":          {batchv1.Job{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}, false},
		"bound to fail":          {batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LacksPods(&tc.job); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
