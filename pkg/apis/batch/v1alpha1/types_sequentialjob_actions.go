// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SequentialJobRestart runs the current step of a SequentialJob again: it is created as sequentialjobs/<name>/restart and returned with its
// status set.
type SequentialJobRestart struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the SequentialJob.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec SequentialJobActionSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status SequentialJobActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SequentialJobSuspend suspends a SequentialJob: it is created as sequentialjobs/<name>/suspend and returned with its
// status set.
type SequentialJobSuspend struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the SequentialJob.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec SequentialJobActionSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status SequentialJobActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SequentialJobResume resumes a suspended SequentialJob: it is created as sequentialjobs/<name>/resume and returned with its
// status set.
type SequentialJobResume struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the SequentialJob.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec SequentialJobActionSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status SequentialJobActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SequentialJobCancel ends a SequentialJob permanently and keeps the object: it is created as
// sequentialjobs/<name>/cancel and returned with its status set.
type SequentialJobCancel struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the SequentialJob.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec SequentialJobActionSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status SequentialJobActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SequentialJobRetry runs a failed SequentialJob again from a step: it is created as sequentialjobs/<name>/retry and returned with its
// status set.
type SequentialJobRetry struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the SequentialJob.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec SequentialJobRetrySpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status SequentialJobActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// SequentialJobActionSpec describes why a sequence is restarted, suspended, resumed or cancelled.
type SequentialJobActionSpec struct {
	// reason is the reason for the action, kept in status.lastAction. At most 1024 characters.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,1,opt,name=reason"`

	// preconditions must hold for the action to happen.
	// +optional
	Preconditions *SequentialJobPreconditions `json:"preconditions,omitempty" protobuf:"bytes,2,opt,name=preconditions"`
}

// SequentialJobRetrySpec describes from which step a failed sequence runs again, and why.
type SequentialJobRetrySpec struct {
	// reason is the reason for the action, kept in status.lastAction. At most 1024 characters.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,1,opt,name=reason"`

	// fromStep is the name of the step from which the sequence runs again: the failed step, or one before it. Defaults
	// to the failed step.
	// +optional
	FromStep string `json:"fromStep,omitempty" protobuf:"bytes,2,opt,name=fromStep"`

	// preconditions must hold for the retry to happen.
	// +optional
	Preconditions *SequentialJobPreconditions `json:"preconditions,omitempty" protobuf:"bytes,3,opt,name=preconditions"`
}

// SequentialJobPreconditions name the state of a SequentialJob for which an action is meant.
type SequentialJobPreconditions struct {
	// uid is the UID of the SequentialJob. Absent for any.
	// +optional
	UID *types.UID `json:"uid,omitempty" protobuf:"bytes,1,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// step is the name of the current step: the one that runs or is next, or that failed. Empty for any.
	// +optional
	Step string `json:"step,omitempty" protobuf:"bytes,2,opt,name=step"`

	// attempt is the number of the current attempt of the current step, as in status.steps; 0 for a step that has not started. A
	// request that names an attempt which the same action has ended already changes nothing, and gets the first response while
	// what it requests is still so. Absent for any.
	// +optional
	Attempt *int32 `json:"attempt,omitempty" protobuf:"varint,3,opt,name=attempt"`
}

// SequentialJobActionStatus is the result of an action.
type SequentialJobActionStatus struct {
	// uid is the UID of the SequentialJob.
	// +optional
	UID types.UID `json:"uid,omitempty" protobuf:"bytes,1,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// step is the name of the step on which the action had its effect. Empty if no step had started.
	// +optional
	Step string `json:"step,omitempty" protobuf:"bytes,2,opt,name=step"`

	// attempt is the number of the attempt of that step that the action began, or else of the current attempt. 0 if
	// there is none.
	// +optional
	Attempt int32 `json:"attempt,omitempty" protobuf:"varint,3,opt,name=attempt"`

	// user is the name of the user whose request took effect. Empty when it changed nothing.
	// +optional
	User string `json:"user,omitempty" protobuf:"bytes,4,opt,name=user"`

	// time is when it took effect. Absent when it changed nothing.
	// +optional
	Time *metav1.MicroTime `json:"time,omitempty" protobuf:"bytes,5,opt,name=time"`

	// message says what happened, for humans.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,6,opt,name=message"`
}
