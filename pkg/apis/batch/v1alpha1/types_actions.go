// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSetRestart restarts a JobSet or a part of it: it is created as jobsets/<name>/restart and returned with its status set.
type JobSetRestart struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the JobSet.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec JobSetRestartSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status JobSetActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSetSuspend suspends a JobSet: it is created as jobsets/<name>/suspend and returned with its status set.
type JobSetSuspend struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the JobSet.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec JobSetActionSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status JobSetActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSetResume resumes a suspended JobSet: it is created as jobsets/<name>/resume and returned with its status set.
type JobSetResume struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the JobSet.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec JobSetActionSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status JobSetActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSetCancel ends a JobSet permanently and keeps the object: it is created as jobsets/<name>/cancel and returned with its status set.
type JobSetCancel struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the JobSet.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec JobSetActionSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status JobSetActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSetRetry runs a failed JobSet again: it is created as jobsets/<name>/retry and returned with its status set.
type JobSetRetry struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the JobSet.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec JobSetRetrySpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status JobSetActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// JobSetRestartSpec describes what to restart, and why.
type JobSetRestartSpec struct {
	// scope is the part of the set to restart: JobSet, ReplicatedJob or Job. Defaults to JobSet.
	// +optional
	// +default="JobSet"
	Scope RestartScope `json:"scope,omitempty" protobuf:"bytes,1,opt,name=scope,casttype=RestartScope"`

	// replicatedJob is the name of the replicatedJob to restart, or of the one to which the Job belongs. Required for the scopes
	// ReplicatedJob and Job, and not allowed for JobSet.
	// +optional
	ReplicatedJob string `json:"replicatedJob,omitempty" protobuf:"bytes,2,opt,name=replicatedJob"`

	// jobIndex is the index of the Job to restart, from 0. Required for the scope Job, and not allowed for others.
	// +optional
	JobIndex *int32 `json:"jobIndex,omitempty" protobuf:"varint,3,opt,name=jobIndex"`

	// reason is the reason for the action, kept in the history of the set. At most 1024 characters.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,4,opt,name=reason"`

	// countTowardsMaxRestarts makes the restart use up one of the maxRestarts of the failure policy; the restart of
	// a replicatedJob uses up one for each of its Jobs. It is refused when fewer are left. Defaults to false.
	// +optional
	CountTowardsMaxRestarts bool `json:"countTowardsMaxRestarts,omitempty" protobuf:"varint,5,opt,name=countTowardsMaxRestarts"`

	// preconditions must hold for the restart to happen.
	// +optional
	Preconditions *ActionPreconditions `json:"preconditions,omitempty" protobuf:"bytes,6,opt,name=preconditions"`

	// force restarts the target even if the current attempt was begun by a request to restart the same target and is not
	// ready yet. Without it, such a request changes nothing, and its response names that attempt. Defaults to false.
	// +optional
	Force bool `json:"force,omitempty" protobuf:"varint,7,opt,name=force"`
}

// RestartScope is the part of a set that is restarted.
// +enum
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
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,1,opt,name=reason"`

	// preconditions must hold for the action to happen.
	// +optional
	Preconditions *ActionPreconditions `json:"preconditions,omitempty" protobuf:"bytes,2,opt,name=preconditions"`
}

// JobSetRetrySpec describes how a failed set runs again, and why.
type JobSetRetrySpec struct {
	// reason is the reason for the action, kept in the history of the set. At most 1024 characters.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,1,opt,name=reason"`

	// maxRestarts is the number of restarts to grant beyond those that are left. 0 or more; more than 0 only for a set
	// with a failure policy. Defaults to 0.
	// +optional
	// +k8s:validation:minimum=0
	MaxRestarts int32 `json:"maxRestarts,omitempty" protobuf:"varint,2,opt,name=maxRestarts"`

	// preconditions must hold for the retry to happen.
	// +optional
	Preconditions *ActionPreconditions `json:"preconditions,omitempty" protobuf:"bytes,3,opt,name=preconditions"`
}

// ActionPreconditions name the state of a JobSet for which an action is meant.
type ActionPreconditions struct {
	// uid is the UID of the JobSet. Absent for any.
	// +optional
	UID *types.UID `json:"uid,omitempty" protobuf:"bytes,1,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// attempt is the number of the current attempt, as in status.attempts; 0 for a set that has none yet. A request that
	// names an attempt which the same action has ended already changes nothing, and gets the first response while what it
	// requests is still so. Absent for any.
	// +optional
	// +k8s:validation:minimum=0
	Attempt *int32 `json:"attempt,omitempty" protobuf:"varint,2,opt,name=attempt"`
}

// JobSetActionStatus is the result of an action.
type JobSetActionStatus struct {
	// uid is the UID of the JobSet.
	// +optional
	UID types.UID `json:"uid,omitempty" protobuf:"bytes,1,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// attempt is the number of the attempt that the action began or, for suspend and cancel, ended. 0 if there was none.
	// +optional
	Attempt int32 `json:"attempt,omitempty" protobuf:"varint,2,opt,name=attempt"`

	// user is the name of the user whose request took effect. Empty when it changed nothing.
	// +optional
	User string `json:"user,omitempty" protobuf:"bytes,3,opt,name=user"`

	// time is when it took effect. Absent when it changed nothing.
	// +optional
	Time *metav1.MicroTime `json:"time,omitempty" protobuf:"bytes,4,opt,name=time"`

	// message says what happened, for humans.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,5,opt,name=message"`
}
