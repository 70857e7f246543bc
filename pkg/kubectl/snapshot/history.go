// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// NoAttempts is said about a set whose server keeps no history.
const NoAttempts = "this server keeps no history of attempts (status.attempts); it is a feature of jobset-apiserver"

// LacksAttempts returns whether the set has run and its server has kept no history of that.
func LacksAttempts(js *jobsetv1alpha2.JobSet) bool {
	if len(js.Status.Attempts) > 0 {
		return false
	}
	finished, _ := helper.Finished(js)
	return helper.CountJobs(js).Seen > 0 || js.Status.Restarts > 0 || finished != ""
}
