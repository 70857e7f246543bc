// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Attempt is one run of a set, from the time something started it until something else ended it. Attempts follow each
// other: a restart of the set, or of a part of it, ends one and begins the next.
type Attempt struct {
	// number counts the attempts of the set from 1, without gaps. It distinguishes attempts in preconditions of actions.
	Number int32 `json:"number" protobuf:"varint,1,opt,name=number"`

	// trigger is what began the attempt: Start, FailurePolicy, Requested, Resume, Preemption or Retry.
	Trigger AttemptTrigger `json:"trigger" protobuf:"bytes,2,opt,name=trigger,casttype=AttemptTrigger"`

	// scope is the part of the set that was started: JobSet, ReplicatedJob or Job.
	Scope AttemptScope `json:"scope" protobuf:"bytes,3,opt,name=scope,casttype=AttemptScope"`

	// replicatedJob is the name of the replicatedJob that was started, or to which the Job belongs. Empty for the scope
	// JobSet.
	// +optional
	ReplicatedJob string `json:"replicatedJob,omitempty" protobuf:"bytes,4,opt,name=replicatedJob"`

	// jobIndex is the index of the Job that was started. Absent for other scopes than Job.
	// +optional
	JobIndex *int32 `json:"jobIndex,omitempty" protobuf:"varint,5,opt,name=jobIndex"`

	// rule is the name of the rule of the failure policy that began the attempt. Empty when no rule matched, and for
	// other triggers than FailurePolicy.
	// +optional
	Rule string `json:"rule,omitempty" protobuf:"bytes,6,opt,name=rule"`

	// user is the name of the user who asked for the attempt. Empty when no user did. At most 256 bytes; what is longer
	// was cut.
	// +optional
	User string `json:"user,omitempty" protobuf:"bytes,7,opt,name=user"`

	// reason is why the attempt began: what the user gave, or the message of the failure policy. At most 1024
	// characters.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,8,opt,name=reason"`

	// requestTime is when the attempt began: the user asked for it, the failure policy was applied, or the set was
	// created or resumed.
	// +optional
	RequestTime *metav1.MicroTime `json:"requestTime,omitempty" protobuf:"bytes,9,opt,name=requestTime"`

	// createTime is when the controller first saw all Jobs of the attempt in existence.
	// +optional
	CreateTime *metav1.MicroTime `json:"createTime,omitempty" protobuf:"bytes,10,opt,name=createTime"`

	// readyTime is when the controller first saw all Jobs ready or succeeded.
	// +optional
	ReadyTime *metav1.MicroTime `json:"readyTime,omitempty" protobuf:"bytes,11,opt,name=readyTime"`

	// endTime is when the attempt ended. Absent for the attempt that runs.
	// +optional
	EndTime *metav1.MicroTime `json:"endTime,omitempty" protobuf:"bytes,12,opt,name=endTime"`

	// outcome is how the attempt ended: Completed, Failed, Restarted, Suspended or Cancelled. Empty while it runs.
	// +optional
	Outcome AttemptOutcome `json:"outcome,omitempty" protobuf:"bytes,13,opt,name=outcome,casttype=AttemptOutcome"`

	// endUser is the name of the user who asked to suspend, cancel or restart the set, and so ended the attempt. Cut as
	// user is.
	// +optional
	EndUser string `json:"endUser,omitempty" protobuf:"bytes,14,opt,name=endUser"`

	// endReason is why the attempt ended: what the user gave, or the message of the condition that ended it. At most
	// 1024 characters.
	// +optional
	EndReason string `json:"endReason,omitempty" protobuf:"bytes,15,opt,name=endReason"`

	// firstCause is the failure that ended the attempt, as read from the pods of the failed Job before they were deleted.
	// Absent when nothing failed. Written once.
	// +optional
	FirstCause *FailureCause `json:"firstCause,omitempty" protobuf:"bytes,16,opt,name=firstCause"`

	// checkpoint is the last checkpoint that the job reported in this attempt, with the annotation
	// jobset-apiserver.io/checkpoint-step of the set. Absent if it reported none.
	// +optional
	Checkpoint *Checkpoint `json:"checkpoint,omitempty" protobuf:"bytes,17,opt,name=checkpoint"`

	// avoidedNodes are the nodes that pods of this attempt keep off, because an earlier attempt failed there; the
	// latest failures come first. Set only for sets that ask for it with the annotation
	// jobset-apiserver.io/avoid-failed-nodes, or whose controller does so by default. At most 32.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=32
	AvoidedNodes []AvoidedNode `json:"avoidedNodes,omitempty" protobuf:"bytes,18,rep,name=avoidedNodes"`

	// forgetTime is when avoidedNodes were forgotten, because pods of the attempt found room nowhere else. Jobs that were created
	// later may run on these nodes. Absent if they were not forgotten.
	// +optional
	ForgetTime *metav1.MicroTime `json:"forgetTime,omitempty" protobuf:"bytes,19,opt,name=forgetTime"`
}

// AvoidedNode is a node that pods keep off for a time.
type AvoidedNode struct {
	// name is the name of the node.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// attempt is the number of the attempt that failed on the node.
	// +k8s:validation:minimum=1
	Attempt int32 `json:"attempt" protobuf:"varint,2,opt,name=attempt"`

	// reason is how it failed there, in a few words. At most 256 bytes; what is longer was cut.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,3,opt,name=reason"`

	// until is when the time ends. Jobs that are created later may run on the node.
	Until metav1.Time `json:"until" protobuf:"bytes,4,opt,name=until"`
}

// Checkpoint is a state of its work that a job has stored and can go on from.
type Checkpoint struct {
	// step is the number that the job reported, 0 or more.
	// +k8s:validation:minimum=0
	Step int64 `json:"step" protobuf:"varint,1,opt,name=step"`

	// time is when the server received the report.
	// +optional
	Time *metav1.MicroTime `json:"time,omitempty" protobuf:"bytes,2,opt,name=time"`

	// goodMilliseconds is how long all Jobs were ready for the work up to this step, in milliseconds, in this attempt and
	// in those before.
	// +optional
	// +k8s:validation:minimum=0
	GoodMilliseconds int64 `json:"goodMilliseconds,omitempty" protobuf:"varint,3,opt,name=goodMilliseconds"`
}

// AttemptTrigger is what began an attempt.
// +enum
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
// +enum
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
// +enum
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
	Job string `json:"job" protobuf:"bytes,1,opt,name=job"`

	// pod is the name of the pod that failed first. Empty when no pod was left to read.
	// +optional
	Pod string `json:"pod,omitempty" protobuf:"bytes,2,opt,name=pod"`

	// node is the name of the node that the pod ran on.
	// +optional
	Node string `json:"node,omitempty" protobuf:"bytes,3,opt,name=node"`

	// container is the name of the container that failed.
	// +optional
	Container string `json:"container,omitempty" protobuf:"bytes,4,opt,name=container"`

	// exitCode is the exit code of the container.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty" protobuf:"varint,5,opt,name=exitCode"`

	// signal is the number of the signal that ended the container, if one did.
	// +optional
	Signal *int32 `json:"signal,omitempty" protobuf:"varint,6,opt,name=signal"`

	// reason is why, in one word: the reason of the pod if it has one, like Evicted or PreemptionByScheduler, or else
	// the reason of the container, like OOMKilled or Error; without a pod the reason of the Job, like
	// BackoffLimitExceeded.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,7,opt,name=reason"`

	// message is the termination message of the container, or else what the pod or the Job says. At most 1024 bytes;
	// what is longer was cut.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,8,opt,name=message"`

	// time is when the container ended, or the pod or the Job failed.
	// +optional
	Time *metav1.Time `json:"time,omitempty" protobuf:"bytes,9,opt,name=time"`
}
