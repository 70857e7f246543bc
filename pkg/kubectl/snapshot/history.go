// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// NoAttempts returns what is said about a set without a history of attempts.
func NoAttempts(js *jobsetv1alpha2.JobSet) string {
	if InMultiKueue(js) {
		return "Kueue copies no history of attempts from the cluster that runs the set; `kubectl jobset why " + js.Name + "` names the cluster"
	}
	return "this server keeps no history of attempts (status.attempts); it is a feature of jobset-apiserver"
}

// InMultiKueue returns whether Kueue runs the set, or will run it, in another cluster.
func InMultiKueue(js *jobsetv1alpha2.JobSet) bool {
	return ptr.Deref(js.Spec.ManagedBy, "") == jobsetv1alpha2.MultiKueueControllerName
}

// LacksAttempts returns whether the set has run and its server has kept no history of that.
func LacksAttempts(js *jobsetv1alpha2.JobSet) bool {
	if len(js.Status.Attempts) > 0 {
		return false
	}
	finished, _ := helper.Finished(js)
	return helper.CountJobs(js).Seen > 0 || js.Status.Restarts > 0 || finished != ""
}
