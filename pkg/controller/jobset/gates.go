// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"errors"
	"slices"
	"sync/atomic"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// dropped are fields of the status that the API server does not keep, because the feature gate is on here and off there.
// A decision that waits until such a field is stored would wait for ever, so that the feature counts as off here too.
type dropped struct {
	startTime, executionAttempts, jobRestarts, attempts atomic.Bool
}

// gates returns the features that decisions may use.
func (c *Controller) gates() plan.Gates {
	gates := c.Gates
	gates.ActiveDeadline = gates.ActiveDeadline && !c.dropped.startTime.Load()
	gates.ExecutionAttempts = gates.ExecutionAttempts && !c.dropped.executionAttempts.Load()
	gates.RestartJob = gates.RestartJob && !c.dropped.jobRestarts.Load()
	gates.Attempts = !c.dropped.attempts.Load()
	return gates
}

// notice returns an error for what the API server did not store of a status.
func (d *dropped) notice(sent, stored *jobsetv1alpha2.JobSetStatus) error {
	var errs []error
	if sent.StartTime != nil && stored.StartTime == nil {
		d.startTime.Store(true)
		errs = append(errs, errors.New("jobset-apiserver does not keep status.startTime: "+
			"deadlines are off until both programs run with --feature-gates=JobSetActiveDeadlineSeconds=true"))
	}
	if !ptr.Equal(sent.ExecutionAttempts, stored.ExecutionAttempts) {
		d.executionAttempts.Store(true)
		errs = append(errs, errors.New("jobset-apiserver does not keep status.executionAttempts: "+
			"executions are not counted until both programs run with --feature-gates=ExecutionAttemptsTracking=true"))
	}
	if countsSingleJobs(sent) && !countsSingleJobs(stored) {
		d.jobRestarts.Store(true)
		errs = append(errs, errors.New("jobset-apiserver does not keep jobRestarts of status.replicatedJobsStatus: "+
			"rules that restart single jobs count as absent until both programs run with --feature-gates=RestartJob=true"))
	}
	if len(sent.Attempts) > 0 && len(stored.Attempts) == 0 {
		d.attempts.Store(true)
		errs = append(errs, errors.New("jobset-apiserver does not keep status.attempts: "+
			"no history is kept until it is of the version of the controller, and the controller is restarted"))
	}
	return errors.Join(errs...)
}

func countsSingleJobs(status *jobsetv1alpha2.JobSetStatus) bool {
	return slices.ContainsFunc(status.ReplicatedJobsStatus, func(count jobsetv1alpha2.ReplicatedJobStatus) bool { return len(count.JobRestarts) > 0 })
}
