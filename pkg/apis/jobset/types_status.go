// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// JobSetStatus is what the controller last observed of a set.
type JobSetStatus struct {
	// conditions are the latest observations of the state of the set: Completed, Failed, Suspended,
	// RestartingJobSet, StartupPolicyInProgress, StartupPolicyCompleted, ChildNameConflict, JobCreationFailure,
	// PodCreationFailure, PodsUnschedulable, PlacementPending, RestartRulesMissing, ServiceEndpointsByCluster, Held and NamespaceRecreated.
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

	// readyMilliseconds is how long all Jobs were ready in the attempts that have ended, in milliseconds, including
	// attempts that are no longer listed. With the running attempt, it gives the share of its life in which a set was
	// ready.
	ReadyMilliseconds int64

	// goodMilliseconds is how long all Jobs were ready for the work that the last reported checkpoint has kept, in
	// milliseconds, also in attempts that are no longer listed. The goodput of the set follows from it.
	GoodMilliseconds int64

	// addedRestarts is how many restarts were granted by retrying the failed set, beyond maxRestarts of the failure
	// policy.
	AddedRestarts int32

	// placement is where the Jobs of a set run that asks for exclusive placement. It is written before these Jobs are created
	// or resumed; nil while the set is suspended, waits for room, or does not ask.
	Placement *Placement
}

// Placement assigns Jobs to topology domains. No two Jobs with exclusive placement by the same label have the same domain.
type Placement struct {
	// restarts is the value of status.restarts for which the domains were chosen. Jobs of a later attempt are placed again.
	Restarts int32

	// replicatedJobs are the replicatedJobs whose Jobs have a domain each.
	ReplicatedJobs []ReplicatedJobPlacement
}

// ReplicatedJobPlacement holds the domains of the Jobs of one replicatedJob.
type ReplicatedJobPlacement struct {
	// name is the name of the replicatedJob.
	Name string

	// topologyKey is the label of nodes whose values are the domains.
	TopologyKey string

	// priority is the priority of the pods when they were placed. Jobs of higher priority may take their domains by
	// preemption.
	Priority int32

	// jobs are where its Jobs run, by job index.
	Jobs []JobPlacement
}

// JobPlacement is where one Job runs.
type JobPlacement struct {
	// domain is the value of the label. It is empty while the scheduler chooses it, because no domain had room when the Job was placed.
	Domain string

	// nodes is how many nodes of the domain the pods of the Job could use when it was placed.
	Nodes int32

	// restarts is how often this Job alone had been restarted when its domain was chosen. It is placed again when it is restarted.
	Restarts int32

	// ready means that all pods of the Job have been ready there. Then it does not leave the domain any more.
	Ready bool

	// moves are about domains that the Job has left because its pods got no nodes there; nil if it has left none.
	Moves *JobMoves
}

// JobMoves are the moves of a Job, in its present attempt, from one domain to another.
type JobMoves struct {
	// left are the domains that the Job has left, the last one last. Of more than 8, the first ones are dropped.
	Left []string

	// lastTime is when the Job moved last.
	LastTime *metav1.Time

	// replacedJob is the UID of the Job that is deleted because its pods belong to the domain that was left last.
	ReplacedJob types.UID
}

// ReplicatedJobStatus counts the Jobs of one replicatedJob by state. A Job may be counted in several of ready, active
// and suspended; Jobs of an earlier attempt are counted nowhere.
type ReplicatedJobStatus struct {
	// name is the name of the replicatedJob.
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
