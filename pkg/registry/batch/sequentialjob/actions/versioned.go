// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// Versioned returns the served form of a sequence, for functions that know only this one. It shares what the sequence points to.
func Versioned(sj *batch.SequentialJob) *batchv1alpha1.SequentialJob {
	var versioned batchv1alpha1.SequentialJob
	utilruntime.Must(batchv1alpha1.Convert_batch_SequentialJob_To_v1alpha1_SequentialJob(sj, &versioned, nil))
	return &versioned
}

// SetPhase derives the phase of a sequence. Every write does.
func SetPhase(sj *batch.SequentialJob) {
	sj.Status.Phase = batch.SequentialJobPhase(helper.Phase(Versioned(sj)))
}
