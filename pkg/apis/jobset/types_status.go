// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobSetStatus is what the controller last observed of a set.
type JobSetStatus struct {
	// conditions are the latest observations of the state of the set: Completed, Failed, Suspended,
	// RestartingJobSet, StartupPolicyInProgress, StartupPolicyCompleted, ChildNameConflict, JobCreationFailure and
	// PodsUnschedulable.
	Conditions []metav1.Condition

	// restarts is the number of restarts of the whole set, counted or not. Jobs whose label
	// jobset.sigs.k8s.io/restart-attempt is lower belong to an earlier attempt.
	Restarts int32

	// restartsCountTowardsMax is the number of restarts of the whole set that count towards maxRestarts.
	RestartsCountTowardsMax int32

	// terminalState is Completed or Failed once the set has finished, and empty before.
	TerminalState string

	// replicatedJobsStatus counts the Jobs of each replicatedJob by state.
	ReplicatedJobsStatus []ReplicatedJobStatus

	// previousInPlaceRestartAttempt is the latest attempt that pods must leave in an in-place restart. Set only with
	// the InPlaceRestart feature.
	PreviousInPlaceRestartAttempt *int32

	// currentInPlaceRestartAttempt is the attempt that all pods have reached in an in-place restart. Set only with the
	// InPlaceRestart feature.
	CurrentInPlaceRestartAttempt *int32

	// startTime is when the current execution began: the first start, the last resume or the last restart of the whole
	// set. spec.activeDeadlineSeconds counts from it. Set only with the JobSetActiveDeadlineSeconds feature.
	StartTime *metav1.Time

	// executionAttempts counts how often the set was started again, by resuming it or by a restart of the whole set. It is
	// written before the Jobs of the execution run; absent means that it was never counted. Set only with the
	// ExecutionAttemptsTracking feature; kept as it is while that is off.
	ExecutionAttempts *int32

	// attempts are the runs of the set, the newest last. At most 10; the oldest is dropped first.
	Attempts []Attempt

	// readyMilliseconds is how long all Jobs were ready in the attempts that have ended, in milliseconds, also in those that are
	// no longer listed. With the running attempt, it gives the share of its life in which a set was ready.
	ReadyMilliseconds int64

	// goodMilliseconds is how long all Jobs were ready for the work that the last reported checkpoint has kept, in
	// milliseconds, also in attempts that are no longer listed. The goodput of the set follows from it.
	GoodMilliseconds int64

	// addedRestarts is how many restarts were granted by retrying the failed set, beyond maxRestarts of the failure
	// policy.
	AddedRestarts int32
}

// ReplicatedJobStatus counts the Jobs of one replicatedJob by state. A Job may be counted in several of ready, active
// and suspended; Jobs of an earlier attempt are counted nowhere.
type ReplicatedJobStatus struct {
	// name is that of the replicatedJob.
	Name string

	// ready is the number of unfinished Jobs whose pods are all ready or have succeeded.
	Ready int32

	// succeeded is the number of Jobs that completed.
	Succeeded int32

	// failed is the number of Jobs that failed.
	Failed int32

	// active is the number of unfinished Jobs with at least one pod that is pending or running.
	Active int32

	// suspended is the number of unfinished Jobs that are suspended.
	Suspended int32

	// jobRestarts is, by job index, the number of restarts of single Jobs, counted or not. At most 1024 items. Set
	// with the RestartJob feature, and once users have restarted single Jobs.
	JobRestarts []int32

	// jobRestartsCountTowardsMax is, by job index, the number of restarts of single Jobs that count towards
	// maxRestarts. At most 1024 items. Set with the RestartJob feature, and once users have restarted single Jobs.
	JobRestartsCountTowardsMax []int32
}
