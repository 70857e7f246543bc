// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Assemble returns the set with those of the Jobs and pods that belong to it, in the order that Load gives them. It is for
// readers that can do with less than everything.
func Assemble(js *jobsetv1alpha2.JobSet, jobs []batchv1.Job, pods []corev1.Pod, now time.Time) *Set {
	s := &Set{JobSet: js, Now: now}
	s.keep(jobs, pods)
	return s
}
