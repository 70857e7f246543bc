// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

// dropDisabledSpec removes fields of features that are off, unless the stored spec has them already.
func dropDisabledSpec(next, prev *jobset.JobSetSpec, gates gates.Gates) {
	if !gates.JobSetActiveDeadlineSeconds && prev.ActiveDeadlineSeconds == nil {
		next.ActiveDeadlineSeconds = nil
	}
}

// dropDisabledStatus removes counters and times of features that are off, unless the stored status has them already. The
// count of executions stands still while its feature is off.
func dropDisabledStatus(next, prev *jobset.JobSetStatus, gates gates.Gates) {
	if !gates.InPlaceRestart && prev.PreviousInPlaceRestartAttempt == nil && prev.CurrentInPlaceRestartAttempt == nil {
		next.PreviousInPlaceRestartAttempt, next.CurrentInPlaceRestartAttempt = nil, nil
	}
	if !gates.JobSetActiveDeadlineSeconds && prev.StartTime == nil {
		next.StartTime = nil
	}
	if !gates.ExecutionAttemptsTracking {
		next.ExecutionAttempts = prev.ExecutionAttempts // numbers that were given out must stay known for later counting
	}
	if gates.RestartJob || countsSingleJobs(prev) {
		return
	}
	for i := range next.ReplicatedJobsStatus {
		next.ReplicatedJobsStatus[i].JobRestarts = nil
		next.ReplicatedJobsStatus[i].JobRestartsCountTowardsMax = nil
	}
}

func countsSingleJobs(status *jobset.JobSetStatus) bool {
	for _, rj := range status.ReplicatedJobsStatus {
		if len(rj.JobRestarts) > 0 || len(rj.JobRestartsCountTowardsMax) > 0 {
			return true
		}
	}
	return false
}
