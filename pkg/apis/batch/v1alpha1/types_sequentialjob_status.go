// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// SequentialJobStatus is how far a sequence is.
type SequentialJobStatus struct {
	// conditions are Available, Progressing, Complete, Failed, Suspended and ResourcesUnavailable.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`

	// phase is the state in one word, derived by the server from the spec and the conditions: Pending, Running, Suspended,
	// Waiting (for quota), Completed or Failed.
	// +optional
	Phase SequentialJobPhase `json:"phase,omitempty" protobuf:"bytes,2,opt,name=phase,casttype=SequentialJobPhase"`

	// state counts the children.
	// +optional
	State SequentialJobState `json:"state" protobuf:"bytes,3,opt,name=state"`

	// progress says which steps have ended.
	// +optional
	Progress SequentialJobProgress `json:"progress" protobuf:"bytes,4,opt,name=progress"`

	// observedGeneration is the generation of the spec that the controller has taken up.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,5,opt,name=observedGeneration"`

	// stepsGeneration is the generation in which the server last saw the steps, or what they share, change.
	// +optional
	StepsGeneration int64 `json:"stepsGeneration,omitempty" protobuf:"varint,6,opt,name=stepsGeneration"`

	// startTime is when the first step was started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty" protobuf:"bytes,7,opt,name=startTime"`

	// completionTime is when the sequence completed or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty" protobuf:"bytes,8,opt,name=completionTime"`

	// activeSeconds is the time in seconds, up to activeSince, that counts towards activeDeadlineSeconds.
	// +optional
	// +k8s:validation:minimum=0
	ActiveSeconds int64 `json:"activeSeconds,omitempty" protobuf:"varint,9,opt,name=activeSeconds"`

	// activeSince is since when the time counts without a break. Absent while the sequence is suspended, waits for quota, or has
	// ended.
	// +optional
	ActiveSince *metav1.Time `json:"activeSince,omitempty" protobuf:"bytes,10,opt,name=activeSince"`

	// steps are the started steps, in order. They are kept when their children are gone.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=100
	Steps []SequentialJobStepStatus `json:"steps,omitempty" protobuf:"bytes,11,rep,name=steps"`

	// lastAction is the last action of a user that changed the sequence.
	// +optional
	LastAction *SequentialJobLastAction `json:"lastAction,omitempty" protobuf:"bytes,12,opt,name=lastAction"`
}

// SequentialJobPhase is the state of a sequence in one word.
// +enum
type SequentialJobPhase string

const (
	// PhasePending means that no step runs: none has started, or the child of the current step cannot be created.
	PhasePending SequentialJobPhase = "Pending"
	// PhaseRunning means that a step runs or is about to.
	PhaseRunning SequentialJobPhase = "Running"
	// PhaseSuspended means that a user suspended the sequence.
	PhaseSuspended SequentialJobPhase = "Suspended"
	// PhaseWaiting means that the current step waits for quota.
	PhaseWaiting SequentialJobPhase = "Waiting"
	// PhaseCompleted means that all steps have completed.
	PhaseCompleted SequentialJobPhase = "Completed"
	// PhaseFailed means that the sequence has failed permanently.
	PhaseFailed SequentialJobPhase = "Failed"
)

// SequentialJobState counts the children of a sequence.
type SequentialJobState struct {
	// active is the number of children that exist and have not ended: 0 or 1.
	// +optional
	Active int32 `json:"active" protobuf:"varint,1,opt,name=active"`

	// succeeded is the number of steps that have completed.
	// +optional
	Succeeded int32 `json:"succeeded" protobuf:"varint,2,opt,name=succeeded"`

	// failed is the number of steps that have failed: 0 or 1.
	// +optional
	Failed int32 `json:"failed" protobuf:"varint,3,opt,name=failed"`
}

// SequentialJobProgress says which steps have ended. Indexes count from 0.
type SequentialJobProgress struct {
	// currentIndex is the index of the step that runs or is next, or that failed; the number of steps once all have completed.
	// Absent before the start.
	// +optional
	CurrentIndex *int32 `json:"currentIndex,omitempty" protobuf:"varint,1,opt,name=currentIndex"`

	// completedIndices are the indexes of the steps that have completed, in ascending order.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=100
	CompletedIndices []int32 `json:"completedIndices" protobuf:"varint,2,rep,name=completedIndices"`

	// failedIndex is the index of the step that failed. Absent when none has.
	// +optional
	FailedIndex *int32 `json:"failedIndex,omitempty" protobuf:"varint,3,opt,name=failedIndex"`

	// failureReason is the reason for which the child of that step failed, for example BackoffLimitExceeded.
	// +optional
	FailureReason string `json:"failureReason,omitempty" protobuf:"bytes,4,opt,name=failureReason"`
}

// SequentialJobStepStatus is what became of a step that was started.
type SequentialJobStepStatus struct {
	// name is the name of the step.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// kind is the kind of the child: Job or JobSet.
	// +optional
	Kind StepKind `json:"kind,omitempty" protobuf:"bytes,2,opt,name=kind,casttype=StepKind"`

	// childName is the name of the child.
	// +optional
	ChildName string `json:"childName,omitempty" protobuf:"bytes,3,opt,name=childName"`

	// childUID is the UID of the child of the current attempt, once the controller has seen it.
	// +optional
	ChildUID types.UID `json:"childUID,omitempty" protobuf:"bytes,4,opt,name=childUID,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// state is Pending, Starting, Waiting, Running, Suspended, Succeeded or Failed.
	State StepState `json:"state" protobuf:"bytes,5,opt,name=state,casttype=StepState"`

	// startTime is when the current attempt of the step began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty" protobuf:"bytes,6,opt,name=startTime"`

	// completionTime is when the step ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty" protobuf:"bytes,7,opt,name=completionTime"`

	// attempts is the number of attempts to run the step, the current one included: each begins with a new child.
	// +optional
	// +k8s:validation:minimum=0
	Attempts int32 `json:"attempts,omitempty" protobuf:"varint,8,opt,name=attempts"`

	// exitCode is the exit code of the first container that failed in the current attempt, or 0 for a step that has
	// succeeded.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty" protobuf:"varint,9,opt,name=exitCode"`

	// reason is why the child failed, in one word, for example BackoffLimitExceeded.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,10,opt,name=reason"`

	// message is why the child failed, for humans. At most 1024 bytes.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,11,opt,name=message"`

	// firstCause is the first failure of the current attempt, as read from pods before they were deleted. Absent when nothing
	// failed.
	// +optional
	FirstCause *jobsetv1alpha2.FailureCause `json:"firstCause,omitempty" protobuf:"bytes,12,opt,name=firstCause"`
}

// StepKind is the kind of the child of a step.
// +enum
type StepKind string

const (
	// StepKindJob is the kind of steps that are containers or Jobs.
	StepKindJob StepKind = "Job"
	// StepKindJobSet is the kind of steps that are JobSets.
	StepKindJobSet StepKind = "JobSet"
)

// StepState is the state of a step that was started.
// +enum
type StepState string

const (
	// StepPending means that the step has run before, and runs again after a retry from an earlier step, as its next attempt.
	StepPending StepState = "Pending"
	// StepStarting means that the step has begun, and that its child is about to be created.
	StepStarting StepState = "Starting"
	// StepWaiting means that the child exists and is suspended, because it waits for quota or another client suspended
	// it.
	StepWaiting StepState = "Waiting"
	// StepRunning means that the child runs.
	StepRunning StepState = "Running"
	// StepSuspended means that the sequence is suspended, and its child with it.
	StepSuspended StepState = "Suspended"
	// StepSucceeded means that the child has completed.
	StepSucceeded StepState = "Succeeded"
	// StepFailed means that the child has failed, or was stopped because the sequence has.
	StepFailed StepState = "Failed"
)

// SequentialJobLastAction is an action of a user that changed a sequence.
type SequentialJobLastAction struct {
	// action is Restart, Retry, Suspend, Resume or Cancel.
	Action SequentialJobAction `json:"action" protobuf:"bytes,1,opt,name=action,casttype=SequentialJobAction"`

	// user is the name of the user. At most 256 bytes; what is longer was cut.
	// +optional
	User string `json:"user,omitempty" protobuf:"bytes,2,opt,name=user"`

	// reason is what the user gave as reason. At most 1024 characters.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,3,opt,name=reason"`

	// time is when the action took effect.
	// +optional
	Time *metav1.MicroTime `json:"time,omitempty" protobuf:"bytes,4,opt,name=time"`

	// step is the name of the step on which the action had its effect. Empty if no step had started.
	// +optional
	Step string `json:"step,omitempty" protobuf:"bytes,5,opt,name=step"`

	// attempt is the number of the attempt of that step that the action began, or else of the attempt at that time.
	// +optional
	Attempt int32 `json:"attempt,omitempty" protobuf:"varint,6,opt,name=attempt"`
}

// SequentialJobAction is what a user can do with a sequence.
// +enum
type SequentialJobAction string

const (
	// ActionRestart runs the current step again.
	ActionRestart SequentialJobAction = "Restart"
	// ActionRetry runs a failed sequence again from a step.
	ActionRetry SequentialJobAction = "Retry"
	// ActionSuspend suspends the sequence.
	ActionSuspend SequentialJobAction = "Suspend"
	// ActionResume resumes a suspended sequence.
	ActionResume SequentialJobAction = "Resume"
	// ActionCancel ends the sequence permanently.
	ActionCancel SequentialJobAction = "Cancel"
)
