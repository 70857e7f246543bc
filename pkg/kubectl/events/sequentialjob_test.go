// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func TestMembersOfASequence(t *testing.T) {
	train := builders.JobSet("any", builders.WithJobs("workers", 2, 1))
	s := membersOfSequence(builders.SequentialJob("nightly",
		builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "prepare", Container: &corev1.Container{}}),
		builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "train", JobSet: &batchv1alpha1.JobSetTemplateSpec{Spec: train.Spec}})))
	for object, want := range map[[2]string]bool{
		{"SequentialJob", "nightly"}:            true,
		{"SequentialJob", "nightly-0"}:          false,
		{"Job", "nightly-0"}:                    true,
		{"Job", "nightly-1"}:                    false,
		{"Job", "nightly-2"}:                    false,
		{"JobSet", "nightly-1"}:                 true,
		{"JobSet", "nightly"}:                   false,
		{"Job", "nightly-1-workers-0"}:          true,
		{"Pod", "nightly-0-x7k2p"}:              true,
		{"Pod", "nightly-0-3-x7k2p"}:            true,
		{"Pod", "nightly-1-workers-0-0-x7k2p"}:  true,
		{"Pod", "nightly-0-web-x7k2p"}:          false,
		{"Pod", "other-0-x7k2p"}:                false,
		{"Workload", "job-nightly-0-a1b2c"}:     true,
		{"Workload", "jobset-nightly-1-a1b2c"}:  true,
		{"Workload", "job-nightly-big-0-a1b2c"}: false,
		{"ConfigMap", "nightly"}:                false,
	} {
		if got := s.Has(object[0], object[1]); got != want {
			t.Errorf("%s %s: got %v, want %v", object[0], object[1], got, want)
		}
	}
}
