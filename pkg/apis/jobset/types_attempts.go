// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Attempt is one run of a set, from the time something started it until something else ended it. Attempts follow each
// other: a restart of the set, or of a part of it, ends one and begins the next.
type Attempt struct {
	// number counts the attempts of the set from 1, without gaps. It distinguishes attempts in preconditions of actions.
	Number int32

	// trigger is what began the attempt: Start, FailurePolicy, Requested, Resume, Preemption or Retry.
	Trigger AttemptTrigger

	// scope is the part of the set that was started: JobSet, ReplicatedJob or Job.
	Scope AttemptScope

	// replicatedJob is the name of the replicatedJob that was started, or to which the Job belongs. Empty for the scope
	// JobSet.
	ReplicatedJob string

	// jobIndex is the index of the Job that was started. Absent for other scopes than Job.
	JobIndex *int32

	// rule is the name of the rule of the failure policy that began the attempt. Empty when no rule matched, and for
	// other triggers than FailurePolicy.
	Rule string

	// user is the name of the user who asked for the attempt. Empty when no user did. At most 256 bytes; what is longer
	// was cut.
	User string

	// reason is why the attempt began: what the user gave, or the message of the failure policy. At most 1024
	// characters.
	Reason string

	// requestTime is when the attempt began: the user asked for it, the failure policy was applied, or the set was
	// created or resumed.
	RequestTime *metav1.MicroTime

	// createTime is when the controller first saw all Jobs of the attempt in existence.
	CreateTime *metav1.MicroTime

	// readyTime is when the controller first saw all Jobs ready or succeeded.
	ReadyTime *metav1.MicroTime

	// endTime is when the attempt ended. Absent for the attempt that runs.
	EndTime *metav1.MicroTime

	// outcome is how the attempt ended: Completed, Failed, Restarted, Suspended or Cancelled. Empty while it runs.
	Outcome AttemptOutcome

	// endUser is the name of the user who asked to suspend, cancel or restart the set, and so ended the attempt. Cut as
	// user is.
	EndUser string

	// endReason is why the attempt ended: what the user gave, or the message of the condition that ended it. At most
	// 1024 characters.
	EndReason string

	// firstCause is the failure that ended the attempt, as read from the pods of the failed Job before they were deleted.
	// Absent when nothing failed. Written once.
	FirstCause *FailureCause

	// checkpoint is the last checkpoint that the job reported in this attempt, with the annotation
	// jobset-apiserver.io/checkpoint-step of the set. Absent if it reported none.
	Checkpoint *Checkpoint

	// avoidedNodes are the nodes that pods of this attempt keep off, because an earlier attempt failed there; the
	// latest failures come first. Set only for sets that ask for it with the annotation
	// jobset-apiserver.io/avoid-failed-nodes, or whose controller does so by default. At most 32.
	AvoidedNodes []AvoidedNode

	// forgetTime is when avoidedNodes were forgotten, because pods of the attempt found room nowhere else. Jobs that were created
	// later may run on these nodes. Absent if they were not forgotten.
	ForgetTime *metav1.MicroTime
}

// AvoidedNode is a node that pods keep off for a time.
type AvoidedNode struct {
	// name is the name of the node.
	Name string

	// attempt is the number of the attempt that failed on the node.
	Attempt int32

	// reason is how it failed there, in a few words. At most 256 bytes; what is longer was cut.
	Reason string

	// until is when the time ends. Jobs that are created later may run on the node.
	Until metav1.Time
}

// Checkpoint is a state of its work that a job has stored and can go on from.
type Checkpoint struct {
	// step is the number that the job reported, 0 or more.
	Step int64

	// time is when the server received the report.
	Time *metav1.MicroTime

	// goodMilliseconds is how long all Jobs were ready for the work up to this step, in milliseconds, in this attempt and
	// in those before.
	GoodMilliseconds int64
}

// AttemptTrigger is what began an attempt.
type AttemptTrigger string

const (
	// TriggerStart means that the set was created, or admitted by a queue, and ran for the first time.
	TriggerStart AttemptTrigger = "Start"
	// TriggerFailurePolicy means that the failure policy restarted the set or a part of it after a Job had failed.
	TriggerFailurePolicy AttemptTrigger = "FailurePolicy"
	// TriggerRequested means that a user requested a restart.
	TriggerRequested AttemptTrigger = "Requested"
	// TriggerResume means that the set was resumed.
	TriggerResume AttemptTrigger = "Resume"
	// TriggerPreemption means that a queueing system stopped the set while it ran, and admitted it again.
	TriggerPreemption AttemptTrigger = "Preemption"
	// TriggerRetry means that a user requested a retry of the failed set.
	TriggerRetry AttemptTrigger = "Retry"
)

// AttemptScope is the part of a set that an attempt started.
type AttemptScope string

const (
	// ScopeJobSet is the whole set.
	ScopeJobSet AttemptScope = "JobSet"
	// ScopeReplicatedJob is all Jobs of one replicatedJob.
	ScopeReplicatedJob AttemptScope = "ReplicatedJob"
	// ScopeJob is one Job.
	ScopeJob AttemptScope = "Job"
)

// AttemptOutcome is how an attempt ended.
type AttemptOutcome string

const (
	// OutcomeCompleted means that the set completed in this attempt.
	OutcomeCompleted AttemptOutcome = "Completed"
	// OutcomeFailed means that the set failed permanently in this attempt.
	OutcomeFailed AttemptOutcome = "Failed"
	// OutcomeRestarted means that another attempt followed, after a failure or on request.
	OutcomeRestarted AttemptOutcome = "Restarted"
	// OutcomeSuspended means that the attempt ended because the set was suspended.
	OutcomeSuspended AttemptOutcome = "Suspended"
	// OutcomeCancelled means that the attempt ended because a user cancelled the set.
	OutcomeCancelled AttemptOutcome = "Cancelled"
)

// FailureCause is the first failure of a failed Job: the container with its pod and node, and how it ended.
type FailureCause struct {
	// job is the name of the failed Job.
	Job string

	// pod is the name of the pod that failed first. Empty when no pod was left to read.
	Pod string

	// node is the name of the node that the pod ran on.
	Node string

	// container is the name of the container that failed.
	Container string

	// exitCode is the exit code of the container.
	ExitCode *int32

	// signal is the number of the signal that ended the container, if one did.
	Signal *int32

	// reason is why, in one word: the reason of the pod if it has one, like Evicted or PreemptionByScheduler, or else
	// the reason of the container, like OOMKilled or Error; without a pod the reason of the Job, like
	// BackoffLimitExceeded.
	Reason string

	// message is the termination message of the container, or else what the pod or the Job says. At most 1024 bytes;
	// what is longer was cut.
	Message string

	// time is when the container ended, or the pod or the Job failed.
	Time *metav1.Time
}
