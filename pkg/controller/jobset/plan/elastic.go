// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// resized returns the size that the template asks for if the Job has another one (docs/reference/jobset.md#elastic-sizes); nil if not. A
// template without a size, for which upstream patches in every pass, leaves the Job alone.
func resized(o *Observed, rj *jobsetv1alpha2.ReplicatedJob, job *batchv1.Job) *Size {
	wanted, current := rj.Template.Spec, job.Spec
	if !o.Gates.ElasticJobSet || wanted.Parallelism == nil || !ptr.Equal(wanted.Parallelism, wanted.Completions) {
		return nil
	}
	if ptr.Equal(wanted.Parallelism, current.Parallelism) && ptr.Equal(wanted.Completions, current.Completions) {
		return nil
	}
	return &Size{Parallelism: ptr.To(*wanted.Parallelism), Completions: ptr.To(*wanted.Completions)}
}
