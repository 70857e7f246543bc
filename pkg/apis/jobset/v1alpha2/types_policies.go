// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
)

// SuccessPolicy says which Jobs must succeed for the set to be Completed.
type SuccessPolicy struct {
	// operator says how many of the targeted Jobs must succeed: All or Any.
	Operator Operator `json:"operator" protobuf:"bytes,1,opt,name=operator,casttype=Operator"`

	// targetReplicatedJobs are the names of the replicatedJobs that count. Absent or empty means all of them.
	// +optional
	// +listType=atomic
	TargetReplicatedJobs []string `json:"targetReplicatedJobs,omitempty" protobuf:"bytes,2,rep,name=targetReplicatedJobs"`
}

// Operator says how many of the targeted Jobs must succeed.
// +enum
type Operator string

const (
	// OperatorAll needs the success of every targeted Job.
	OperatorAll Operator = "All"
	// OperatorAny needs the success of one targeted Job.
	OperatorAny Operator = "Any"
)

// FailurePolicy says what happens when a Job of the set fails.
type FailurePolicy struct {
	// maxRestarts is the number of counted restarts after which the next failure fails the set. Defaults to 0;
	// negative values behave like 0.
	// +optional
	MaxRestarts int32 `json:"maxRestarts" protobuf:"varint,1,opt,name=maxRestarts"`

	// restartStrategy says how Jobs are replaced in a restart. Defaults to Recreate.
	// +optional
	// +default="Recreate"
	RestartStrategy JobSetRestartStrategy `json:"restartStrategy,omitempty" protobuf:"bytes,2,opt,name=restartStrategy,casttype=JobSetRestartStrategy"`

	// rules choose an action by what failed. They are tried in order and the first that matches decides; when none
	// matches the action is RestartJobSet.
	// +optional
	// +listType=atomic
	Rules []FailurePolicyRule `json:"rules,omitempty" protobuf:"bytes,3,rep,name=rules"`
}

// JobSetRestartStrategy says how Jobs are replaced in a restart.
// +enum
type JobSetRestartStrategy string

const (
	// RestartStrategyRecreate creates each Job again as soon as its predecessor is gone.
	RestartStrategyRecreate JobSetRestartStrategy = "Recreate"
	// RestartStrategyBlockingRecreate creates no Job before all Jobs of the earlier attempt are gone.
	RestartStrategyBlockingRecreate JobSetRestartStrategy = "BlockingRecreate"
	// RestartStrategyInPlaceRestart restarts the containers in their pods. Needs the InPlaceRestart feature.
	RestartStrategyInPlaceRestart JobSetRestartStrategy = "InPlaceRestart"
)

// FailurePolicyRule chooses an action for a kind of failure. A Job matches when all that the rule states is true of it.
type FailurePolicyRule struct {
	// name identifies the rule in conditions: 1 to 128 letters, digits, underscores, commas and colons, beginning with
	// a letter and not ending with a comma or colon; unique in the policy. Defaults to failurePolicyRule<index> when
	// the set is created.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// action is what is done when the rule matches.
	Action FailurePolicyAction `json:"action" protobuf:"bytes,2,opt,name=action,casttype=FailurePolicyAction"`

	// onJobFailureReasons are the reasons of a failed Job that match: BackoffLimitExceeded, DeadlineExceeded,
	// FailedIndexes, MaxFailedIndexesExceeded or PodFailurePolicy. Absent or empty matches any reason.
	// +optional
	// +listType=atomic
	OnJobFailureReasons []string `json:"onJobFailureReasons,omitempty" protobuf:"bytes,3,rep,name=onJobFailureReasons"`

	// onJobFailureMessagePatterns are RE2 regular expressions, one of which must be found anywhere in the message of
	// the failed Job. Absent or empty matches any message.
	// +optional
	// +listType=atomic
	OnJobFailureMessagePatterns []string `json:"onJobFailureMessagePatterns,omitempty" protobuf:"bytes,4,rep,name=onJobFailureMessagePatterns"`

	// targetReplicatedJobs are the names of the replicatedJobs whose failures match. Absent or empty means all.
	// +optional
	// +listType=atomic
	TargetReplicatedJobs []string `json:"targetReplicatedJobs,omitempty" protobuf:"bytes,5,rep,name=targetReplicatedJobs"`
}

// FailurePolicyAction is what is done after the failure of a Job.
// +enum
type FailurePolicyAction string

const (
	// FailJobSet fails the set at once.
	FailJobSet FailurePolicyAction = "FailJobSet"
	// RestartJobSet restarts all Jobs and counts towards maxRestarts.
	RestartJobSet FailurePolicyAction = "RestartJobSet"
	// RestartJobSetAndIgnoreMaxRestarts restarts all Jobs without counting.
	RestartJobSetAndIgnoreMaxRestarts FailurePolicyAction = "RestartJobSetAndIgnoreMaxRestarts"
	// RestartJob restarts only the failed Job and counts towards maxRestarts. Needs the RestartJob feature.
	RestartJob FailurePolicyAction = "RestartJob"
	// RestartJobAndIgnoreMaxRestarts restarts only the failed Job without counting. Needs the RestartJob feature.
	RestartJobAndIgnoreMaxRestarts FailurePolicyAction = "RestartJobAndIgnoreMaxRestarts"
)

// StartupPolicy orders the start of the replicatedJobs.
type StartupPolicy struct {
	// startupPolicyOrder is AnyOrder (all at once) or InOrder (each replicatedJob after the one before it is ready).
	StartupPolicyOrder StartupPolicyOptions `json:"startupPolicyOrder" protobuf:"bytes,1,opt,name=startupPolicyOrder,casttype=StartupPolicyOptions"`
}

// StartupPolicyOptions is the order in which replicatedJobs start.
// +enum
type StartupPolicyOptions string

const (
	// AnyOrder starts all replicatedJobs at once.
	AnyOrder StartupPolicyOptions = "AnyOrder"
	// InOrder starts each replicatedJob after the one before it in the list is ready.
	InOrder StartupPolicyOptions = "InOrder"
)

// VolumeClaimPolicy is a group of persistent volume claims with one retention rule.
type VolumeClaimPolicy struct {
	// templates are the claims, each named <template name>-<set>. A claim is mounted into every pod that has a
	// volumeMount of the template's name. Only name, labels, annotations and spec are used. At most 50.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=50
	Templates []corev1.PersistentVolumeClaim `json:"templates,omitempty" protobuf:"bytes,1,rep,name=templates"`

	// retentionPolicy says what becomes of the claims when the set is deleted. Defaults to deleting them.
	// +optional
	RetentionPolicy *VolumeRetentionPolicy `json:"retentionPolicy,omitempty" protobuf:"bytes,2,opt,name=retentionPolicy"`
}

// VolumeRetentionPolicy says what becomes of the claims of a set.
type VolumeRetentionPolicy struct {
	// whenDeleted is Delete or Retain, for the time when the set is deleted. Defaults to Delete.
	// +optional
	// +default="Delete"
	WhenDeleted *RetentionPolicyType `json:"whenDeleted,omitempty" protobuf:"bytes,1,opt,name=whenDeleted,casttype=RetentionPolicyType"`
}

// RetentionPolicyType says what becomes of a claim.
// +enum
type RetentionPolicyType string

const (
	// RetentionPolicyDelete deletes the claims with the set.
	RetentionPolicyDelete RetentionPolicyType = "Delete"
	// RetentionPolicyRetain keeps the claims, for a later set of the same name.
	RetentionPolicyRetain RetentionPolicyType = "Retain"
)
