// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

// Keys of annotations that the server looks at when it validates a set. The full list is in package v1alpha2.
const (
	// ExclusiveKey asks for one Job per topology domain; its value is the node label that names the domain.
	ExclusiveKey = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	// NodeSelectorStrategyKey, beside ExclusiveKey, chooses placement through node selectors.
	NodeSelectorStrategyKey = "alpha.jobset.sigs.k8s.io/node-selector"
	// CheckpointStepKey reports the step of the last checkpoint of the job.
	CheckpointStepKey = "jobset-apiserver.io/checkpoint-step"
	// AvoidFailedNodesKey holds for how long pods keep off a node on which an attempt failed.
	AvoidFailedNodesKey = "jobset-apiserver.io/avoid-failed-nodes"
	// MetadataKey says which keys Jobs and pods get, and MetadataCompact is its only value.
	MetadataKey     = "jobset-apiserver.io/metadata"
	MetadataCompact = "compact"
	// ServiceEndpointsKey says who writes the addresses of the headless Service: ServiceEndpointsCluster, ServiceEndpointsController or
	// ServiceEndpointsAuto.
	ServiceEndpointsKey        = "jobset-apiserver.io/service-endpoints"
	ServiceEndpointsCluster    = "cluster"
	ServiceEndpointsController = "controller"
	ServiceEndpointsAuto       = "auto"
)

// ControllerName is the value of spec.managedBy that means the same as none: the controller of this project.
const ControllerName = "jobset.sigs.k8s.io/jobset-controller"

// DefaultGroupName is the groupName of a replicatedJob that names none.
const DefaultGroupName = "default"

// Types of the conditions that the server reads for tables and warnings.
const (
	ConditionCompleted  = "Completed"
	ConditionFailed     = "Failed"
	ConditionSuspended  = "Suspended"
	ConditionRestarting = "RestartingJobSet"
	ConditionStarting   = "StartupPolicyInProgress"

	ConditionNameConflict    = "ChildNameConflict"
	ConditionCreationFailure = "JobCreationFailure"
	ConditionUnschedulable   = "PodsUnschedulable"
	ConditionHeld            = "Held"
	ConditionRetried         = "Retried"
)

// Bounds of the history in status.attempts.
const (
	// MaxAttempts is the number of attempts that a status holds: the newest ones.
	MaxAttempts = 10
	// MaxAttemptUserBytes is the length of the name of a user.
	MaxAttemptUserBytes = 256
	// MaxAttemptReasonCharacters is the length of a reason.
	MaxAttemptReasonCharacters = 1024
	// MaxCauseBytes is the length of the reason and of the message of a first cause.
	MaxCauseBytes = 1024
	// MaxAvoidedNodes is the number of nodes that the pods of an attempt keep off, and MaxAvoidedReasonBytes the length of the
	// reason of each.
	MaxAvoidedNodes       = 32
	MaxAvoidedReasonBytes = 256
)

// MaxCountedJobs is the number of Jobs of a replicatedJob up to which restarts of single Jobs are counted.
const MaxCountedJobs = 1024
