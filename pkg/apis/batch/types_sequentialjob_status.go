// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// SequentialJobStatus is how far a sequence is.
type SequentialJobStatus struct {
	// conditions are Available, Progressing, Complete, Failed, Suspended and ResourcesUnavailable.
	Conditions []metav1.Condition

	// phase is the state in one word, derived by the server from the spec and the conditions: Pending, Running, Suspended,
	// Waiting (for quota), Completed or Failed.
	Phase SequentialJobPhase

	// state counts the children.
	State SequentialJobState

	// progress says which steps have ended.
	Progress SequentialJobProgress

	// observedGeneration is the generation of the spec that the controller has taken up.
	ObservedGeneration int64

	// stepsGeneration is the generation in which the server last saw the steps, or what they share, change.
	StepsGeneration int64

	// startTime is when the first step was started.
	StartTime *metav1.Time

	// completionTime is when the sequence completed or failed.
	CompletionTime *metav1.Time

	// activeSeconds is the time in seconds, up to activeSince, that counts towards activeDeadlineSeconds.
	ActiveSeconds int64

	// activeSince is since when the time counts without a break. Absent while the sequence is suspended, waits for quota, or has
	// ended.
	ActiveSince *metav1.Time

	// steps are the started steps, in order. They are kept when their children are gone.
	Steps []SequentialJobStepStatus

	// lastAction is the last action of a user that changed the sequence.
	LastAction *SequentialJobLastAction
}

// SequentialJobPhase is the state of a sequence in one word.
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
	Active int32

	// succeeded is the number of steps that have completed.
	Succeeded int32

	// failed is the number of steps that have failed: 0 or 1.
	Failed int32
}

// SequentialJobProgress says which steps have ended. Indexes count from 0.
type SequentialJobProgress struct {
	// currentIndex is the index of the step that runs or is next, or that failed; the number of steps once all have completed.
	// Absent before the start.
	CurrentIndex *int32

	// completedIndices are the indexes of the steps that have completed, in ascending order.
	CompletedIndices []int32

	// failedIndex is the index of the step that failed. Absent when none has.
	FailedIndex *int32

	// failureReason is the reason for which the child of that step failed, for example BackoffLimitExceeded.
	FailureReason string
}

// SequentialJobStepStatus is what became of a step that was started.
type SequentialJobStepStatus struct {
	// name is the name of the step.
	Name string

	// kind is the kind of the child: Job or JobSet.
	Kind StepKind

	// childName is the name of the child.
	ChildName string

	// childUID is the UID of the child of the current attempt, once the controller has seen it.
	ChildUID types.UID

	// state is Pending, Starting, Waiting, Running, Suspended, Succeeded or Failed.
	State StepState

	// startTime is when the current attempt of the step began.
	StartTime *metav1.Time

	// completionTime is when the step ended.
	CompletionTime *metav1.Time

	// attempts is the number of attempts to run the step, the current one included: each begins with a new child.
	Attempts int32

	// exitCode is the exit code of the first container that failed in the current attempt, or 0 for a step that has
	// succeeded.
	ExitCode *int32

	// reason is why the child failed, in one word, for example BackoffLimitExceeded.
	Reason string

	// message is why the child failed, for humans. At most 1024 bytes.
	Message string

	// firstCause is the first failure of the current attempt, as read from pods before they were deleted. Absent when nothing
	// failed.
	FirstCause *jobset.FailureCause
}

// StepKind is the kind of the child of a step.
type StepKind string

const (
	// StepKindJob is the kind of steps that are containers or Jobs.
	StepKindJob StepKind = "Job"
	// StepKindJobSet is the kind of steps that are JobSets.
	StepKindJobSet StepKind = "JobSet"
)

// StepState is the state of a step that was started.
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
	Action SequentialJobAction

	// user is the name of the user. At most 256 bytes; what is longer was cut.
	User string

	// reason is what the user gave as reason. At most 1024 characters.
	Reason string

	// time is when the action took effect.
	Time *metav1.MicroTime

	// step is the name of the step on which the action had its effect. Empty if no step had started.
	Step string

	// attempt is the number of the attempt of that step that the action began, or else of the attempt at that time.
	Attempt int32
}

// SequentialJobAction is what a user can do with a sequence.
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
