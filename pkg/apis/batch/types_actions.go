// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSetRestart restarts a JobSet or a part of it: it is created as jobsets/<name>/restart and returned with its status set.
type JobSetRestart struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the JobSet.
	metav1.ObjectMeta

	// spec describes the request.
	Spec JobSetRestartSpec

	// status is the result of the request, set by the server.
	Status JobSetActionStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSetSuspend suspends a JobSet: it is created as jobsets/<name>/suspend and returned with its status set.
type JobSetSuspend struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the JobSet.
	metav1.ObjectMeta

	// spec describes the request.
	Spec JobSetActionSpec

	// status is the result of the request, set by the server.
	Status JobSetActionStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSetResume resumes a suspended JobSet: it is created as jobsets/<name>/resume and returned with its status set.
type JobSetResume struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the JobSet.
	metav1.ObjectMeta

	// spec describes the request.
	Spec JobSetActionSpec

	// status is the result of the request, set by the server.
	Status JobSetActionStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSetCancel ends a JobSet permanently and keeps the object: it is created as jobsets/<name>/cancel and returned with its status set.
type JobSetCancel struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the JobSet.
	metav1.ObjectMeta

	// spec describes the request.
	Spec JobSetActionSpec

	// status is the result of the request, set by the server.
	Status JobSetActionStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSetRetry runs a failed JobSet again: it is created as jobsets/<name>/retry and returned with its status set.
type JobSetRetry struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the JobSet.
	metav1.ObjectMeta

	// spec describes the request.
	Spec JobSetRetrySpec

	// status is the result of the request, set by the server.
	Status JobSetActionStatus
}

// JobSetRestartSpec describes what to restart, and why.
type JobSetRestartSpec struct {
	// scope is the part of the set to restart: JobSet, ReplicatedJob or Job. Defaults to JobSet.
	Scope RestartScope

	// replicatedJob is the name of the replicatedJob to restart, or of the one to which the Job belongs. Required for the scopes
	// ReplicatedJob and Job, and not allowed for JobSet.
	ReplicatedJob string

	// jobIndex is the index of the Job to restart, from 0. Required for the scope Job, and not allowed for others.
	JobIndex *int32

	// reason is the reason for the action, kept in the history of the set. At most 1024 characters.
	Reason string

	// countTowardsMaxRestarts makes the restart use up one of the maxRestarts of the failure policy; the restart of
	// a replicatedJob uses up one for each of its Jobs. It is refused when fewer are left. Defaults to false.
	CountTowardsMaxRestarts bool

	// preconditions must hold for the restart to happen.
	Preconditions *ActionPreconditions

	// force restarts the target even if the current attempt was begun by a request to restart the same target and is not
	// ready yet. Without it, such a request changes nothing, and its response names that attempt. Defaults to false.
	Force bool
}

// RestartScope is the part of a set that is restarted.
type RestartScope string

const (
	// RestartScopeJobSet restarts the whole set.
	RestartScopeJobSet RestartScope = "JobSet"
	// RestartScopeReplicatedJob restarts all Jobs of one replicatedJob.
	RestartScopeReplicatedJob RestartScope = "ReplicatedJob"
	// RestartScopeJob restarts one Job.
	RestartScopeJob RestartScope = "Job"
)

// JobSetActionSpec describes why a set is suspended, resumed or cancelled.
type JobSetActionSpec struct {
	// reason is the reason for the action, kept in the history of the set. At most 1024 characters.
	Reason string

	// preconditions must hold for the action to happen.
	Preconditions *ActionPreconditions
}

// JobSetRetrySpec describes how a failed set runs again, and why.
type JobSetRetrySpec struct {
	// reason is the reason for the action, kept in the history of the set. At most 1024 characters.
	Reason string

	// maxRestarts is the number of restarts to grant beyond those that are left. 0 or more; more than 0 only for a set
	// with a failure policy. Defaults to 0.
	MaxRestarts int32

	// preconditions must hold for the retry to happen.
	Preconditions *ActionPreconditions
}

// ActionPreconditions name the state of a JobSet for which an action is meant.
type ActionPreconditions struct {
	// uid is the UID of the JobSet. Absent for any.
	UID *types.UID

	// attempt is the number of the current attempt, as in status.attempts; 0 for a set that has none yet. A request that
	// names an attempt which the same action has ended already changes nothing, and gets the first response while what it
	// requests is still so. Absent for any.
	Attempt *int32
}

// JobSetActionStatus is the result of an action.
type JobSetActionStatus struct {
	// uid is the UID of the JobSet.
	UID types.UID

	// attempt is the number of the attempt that the action began or, for suspend and cancel, ended. 0 if there was none.
	Attempt int32

	// user is the name of the user whose request took effect. Empty when it changed nothing.
	User string

	// time is when it took effect. Absent when it changed nothing.
	Time *metav1.MicroTime

	// message says what happened, for humans.
	Message string
}
