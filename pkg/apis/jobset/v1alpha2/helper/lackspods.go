// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// LacksPods returns whether the Job controller should make more pods for a Job than there are.
func LacksPods(job *batchv1.Job) bool {
	if job.DeletionTimestamp != nil || ptr.Deref(job.Spec.Suspend, false) {
		return false
	}
	for _, c := range job.Status.Conditions {
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet:
			if c.Status == corev1.ConditionTrue {
				return false
			}
		}
	}
	wanted := ptr.Deref(job.Spec.Parallelism, 1)
	switch {
	case job.Spec.Completions != nil:
		wanted = min(wanted, *job.Spec.Completions-job.Status.Succeeded)
	case job.Status.Succeeded > 0:
		return false // the others finish, and none are added
	}
	return job.Status.Active < wanted
}
