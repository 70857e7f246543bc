// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import batchv1 "k8s.io/api/batch/v1"

// LostLabels returns the labels with which the Job was created and that another client has removed or changed since. Its pod
// template still has them: the Job API refuses changes of that.
func LostLabels(job *batchv1.Job) map[string]string {
	lost := map[string]string{}
	for key, value := range job.Spec.Template.Labels {
		if within(key, "jobset.sigs.k8s.io") && job.Labels[key] != value {
			lost[key] = value
		}
	}
	return lost
}
