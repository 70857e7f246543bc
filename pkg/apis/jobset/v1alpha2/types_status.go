// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// JobSetStatus is what the controller last observed of a set.
type JobSetStatus struct {
	// conditions are the latest observations of the state of the set: Completed, Failed, Suspended,
	// RestartingJobSet, StartupPolicyInProgress, StartupPolicyCompleted, ChildNameConflict, JobCreationFailure,
	// PodCreationFailure, PodsUnschedulable, PlacementPending, RestartRulesMissing, ServiceEndpointsByCluster, Held and NamespaceRecreated.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`

	// restarts is the number of restarts of the whole set, counted or not. Jobs whose label
	// jobset.sigs.k8s.io/restart-attempt is lower belong to an earlier attempt.
	// +optional
	Restarts int32 `json:"restarts" protobuf:"varint,2,opt,name=restarts"`

	// restartsCountTowardsMax is the number of restarts of the whole set that count towards maxRestarts.
	// +optional
	RestartsCountTowardsMax int32 `json:"restartsCountTowardsMax,omitempty" protobuf:"varint,3,opt,name=restartsCountTowardsMax"`

	// terminalState is Completed or Failed once the set has finished, and empty before.
	// +optional
	TerminalState string `json:"terminalState,omitempty" protobuf:"bytes,4,opt,name=terminalState"`

	// replicatedJobsStatus counts the Jobs of each replicatedJob by state.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	ReplicatedJobsStatus []ReplicatedJobStatus `json:"replicatedJobsStatus,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,5,rep,name=replicatedJobsStatus"`

	// previousInPlaceRestartAttempt is the latest attempt that pods must leave in an in-place restart. Set only with
	// the InPlaceRestart feature.
	// +optional
	// +k8s:validation:minimum=0
	PreviousInPlaceRestartAttempt *int32 `json:"previousInPlaceRestartAttempt,omitempty" protobuf:"varint,6,opt,name=previousInPlaceRestartAttempt"`

	// currentInPlaceRestartAttempt is the attempt that all pods have reached in an in-place restart. Set only with the
	// InPlaceRestart feature.
	// +optional
	// +k8s:validation:minimum=0
	CurrentInPlaceRestartAttempt *int32 `json:"currentInPlaceRestartAttempt,omitempty" protobuf:"varint,7,opt,name=currentInPlaceRestartAttempt"`

	// startTime is when the current execution began: the first start, the last resume or the last restart of the whole
	// set. spec.activeDeadlineSeconds counts from it. Set only with the JobSetActiveDeadlineSeconds feature.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty" protobuf:"bytes,8,opt,name=startTime"`

	// executionAttempts counts how often the set was started again, by resuming it or by a restart of the whole set. It is
	// written before the Jobs of the execution run; absent means that it was never counted. Set only with the
	// ExecutionAttemptsTracking feature; kept as it is while that is off.
	// +optional
	// +k8s:validation:minimum=0
	ExecutionAttempts *int32 `json:"executionAttempts,omitempty" protobuf:"varint,9,opt,name=executionAttempts"`

	// attempts are the runs of the set, the newest last. At most 10; the oldest is dropped first.
	// +optional
	// +listType=map
	// +listMapKey=number
	// +patchMergeKey=number
	// +patchStrategy=merge
	// +k8s:validation:maxItems=10
	Attempts []Attempt `json:"attempts,omitempty" patchStrategy:"merge" patchMergeKey:"number" protobuf:"bytes,10,rep,name=attempts"`

	// readyMilliseconds is how long all Jobs were ready in the attempts that have ended, in milliseconds, including
	// attempts that are no longer listed. With the running attempt, it gives the share of its life in which a set was
	// ready.
	// +optional
	// +k8s:validation:minimum=0
	ReadyMilliseconds int64 `json:"readyMilliseconds,omitempty" protobuf:"varint,11,opt,name=readyMilliseconds"`

	// addedRestarts is how many restarts were granted by retrying the failed set, beyond maxRestarts of the failure
	// policy.
	// +optional
	// +k8s:validation:minimum=0
	AddedRestarts int32 `json:"addedRestarts,omitempty" protobuf:"varint,12,opt,name=addedRestarts"`

	// goodMilliseconds is how long all Jobs were ready for the work that the last reported checkpoint has kept, in
	// milliseconds, also in attempts that are no longer listed. The goodput of the set follows from it.
	// +optional
	// +k8s:validation:minimum=0
	GoodMilliseconds int64 `json:"goodMilliseconds,omitempty" protobuf:"varint,13,opt,name=goodMilliseconds"`

	// placement is where the Jobs of a set run that asks for exclusive placement. It is written before these Jobs are created
	// or resumed; absent while the set is suspended, waits for room, or does not ask.
	// +optional
	Placement *Placement `json:"placement,omitempty" protobuf:"bytes,14,opt,name=placement"`
}

// Placement assigns Jobs to topology domains. No two Jobs with exclusive placement by the same label have the same domain.
type Placement struct {
	// restarts is the value of status.restarts for which the domains were chosen. Jobs of a later attempt are placed again.
	// +optional
	// +k8s:validation:minimum=0
	Restarts int32 `json:"restarts" protobuf:"varint,1,opt,name=restarts"`

	// replicatedJobs are the replicatedJobs whose Jobs have a domain each.
	// +optional
	// +listType=map
	// +listMapKey=name
	ReplicatedJobs []ReplicatedJobPlacement `json:"replicatedJobs,omitempty" protobuf:"bytes,2,rep,name=replicatedJobs"`
}

// ReplicatedJobPlacement holds the domains of the Jobs of one replicatedJob.
type ReplicatedJobPlacement struct {
	// name is the name of the replicatedJob.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// topologyKey is the label of nodes whose values are the domains.
	TopologyKey string `json:"topologyKey" protobuf:"bytes,2,opt,name=topologyKey"`

	// priority is the priority of the pods when they were placed. Jobs of higher priority may take their domains by
	// preemption.
	// +optional
	Priority int32 `json:"priority,omitempty" protobuf:"varint,4,opt,name=priority"`

	// jobs are where its Jobs run, by job index.
	// +optional
	// +listType=atomic
	Jobs []JobPlacement `json:"jobs,omitempty" protobuf:"bytes,3,rep,name=jobs"`
}

// JobPlacement is where one Job runs.
type JobPlacement struct {
	// domain is the value of the label. It is empty while the scheduler chooses it, because no domain had room when the Job was placed.
	// +optional
	Domain string `json:"domain,omitempty" protobuf:"bytes,1,opt,name=domain"`

	// nodes is how many nodes of the domain the pods of the Job could use when it was placed.
	// +optional
	// +k8s:validation:minimum=0
	Nodes int32 `json:"nodes,omitempty" protobuf:"varint,2,opt,name=nodes"`

	// restarts is how often this Job alone had been restarted when its domain was chosen. It is placed again when it is restarted.
	// +optional
	// +k8s:validation:minimum=0
	Restarts int32 `json:"restarts,omitempty" protobuf:"varint,3,opt,name=restarts"`

	// ready means that all pods of the Job have been ready there. Then it does not leave the domain any more.
	// +optional
	Ready bool `json:"ready,omitempty" protobuf:"varint,4,opt,name=ready"`

	// moves are about domains that the Job has left because its pods got no nodes there; absent if it has left none.
	// +optional
	Moves *JobMoves `json:"moves,omitempty" protobuf:"bytes,5,opt,name=moves"`
}

// JobMoves are the moves of a Job, in its present attempt, from one domain to another.
type JobMoves struct {
	// left are the domains that the Job has left, the last one last. Of more than 8, the first ones are dropped.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=8
	Left []string `json:"left,omitempty" protobuf:"bytes,1,rep,name=left"`

	// lastTime is when the Job moved last.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty" protobuf:"bytes,2,opt,name=lastTime"`

	// replacedJob is the UID of the Job that is deleted because its pods belong to the domain that was left last.
	// +optional
	ReplacedJob types.UID `json:"replacedJob,omitempty" protobuf:"bytes,3,opt,name=replacedJob,casttype=k8s.io/apimachinery/pkg/types.UID"`
}

// ReplicatedJobStatus counts the Jobs of one replicatedJob by state. A Job may be counted in several of ready, active
// and suspended; Jobs of an earlier attempt are counted nowhere.
type ReplicatedJobStatus struct {
	// name is the name of the replicatedJob.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// ready is the number of unfinished Jobs whose pods are all ready or have succeeded.
	Ready int32 `json:"ready" protobuf:"varint,2,opt,name=ready"`

	// succeeded is the number of Jobs that completed.
	Succeeded int32 `json:"succeeded" protobuf:"varint,3,opt,name=succeeded"`

	// failed is the number of Jobs that failed.
	Failed int32 `json:"failed" protobuf:"varint,4,opt,name=failed"`

	// active is the number of unfinished Jobs with at least one pod that is pending or running.
	Active int32 `json:"active" protobuf:"varint,5,opt,name=active"`

	// suspended is the number of unfinished Jobs that are suspended.
	Suspended int32 `json:"suspended" protobuf:"varint,6,opt,name=suspended"`

	// jobRestarts is, by job index, the number of restarts of single Jobs, counted or not. At most 1024 items. Set
	// with the RestartJob feature, and once users have restarted single Jobs.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=1024
	JobRestarts []int32 `json:"jobRestarts,omitempty" protobuf:"varint,7,rep,name=jobRestarts"`

	// jobRestartsCountTowardsMax is, by job index, the number of restarts of single Jobs that count towards
	// maxRestarts. At most 1024 items. Set with the RestartJob feature, and once users have restarted single Jobs.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=1024
	JobRestartsCountTowardsMax []int32 `json:"jobRestartsCountTowardsMax,omitempty" protobuf:"varint,8,rep,name=jobRestartsCountTowardsMax"`
}
