// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSetRestart recreates groups of a LeaderWorkerSet: it is created as leaderworkersets/<name>/restart and
// returned with its status set.
type LeaderWorkerSetRestart struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the LeaderWorkerSet.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec LeaderWorkerSetRestartSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status LeaderWorkerSetActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSetRollback returns a LeaderWorkerSet to a former revision: it is created as
// leaderworkersets/<name>/rollback and returned with its status set.
type LeaderWorkerSetRollback struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the LeaderWorkerSet.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec LeaderWorkerSetRollbackSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status LeaderWorkerSetActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSetPause pauses the rolling update of a LeaderWorkerSet: it is created as leaderworkersets/<name>/pause
// and returned with its status set.
type LeaderWorkerSetPause struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the LeaderWorkerSet.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec LeaderWorkerSetActionSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status LeaderWorkerSetActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSetResume resumes the rolling update of a LeaderWorkerSet: it is created as
// leaderworkersets/<name>/resume and returned with its status set.
type LeaderWorkerSetResume struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the LeaderWorkerSet.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the request.
	// +optional
	Spec LeaderWorkerSetActionSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the result of the request, set by the server.
	// +optional
	Status LeaderWorkerSetActionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// LeaderWorkerSetActionSpec describes why a rolling update is paused or resumed.
type LeaderWorkerSetActionSpec struct {
	// reason is the reason for the action, kept in status.lastAction. At most 1024 characters.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,1,opt,name=reason"`

	// preconditions must hold for the action to happen.
	// +optional
	Preconditions *LeaderWorkerSetPreconditions `json:"preconditions,omitempty" protobuf:"bytes,2,opt,name=preconditions"`
}

// LeaderWorkerSetRestartSpec describes which groups are restarted, and why.
type LeaderWorkerSetRestartSpec struct {
	// reason is the reason for the action, kept in status.lastAction. At most 1024 characters.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,1,opt,name=reason"`

	// group is the index of the group to restart. Absent for all groups, which are restarted a few at a time, as in a rolling update.
	// +optional
	Group *int32 `json:"group,omitempty" protobuf:"varint,2,opt,name=group"`

	// preconditions must hold for the restart to happen.
	// +optional
	Preconditions *LeaderWorkerSetPreconditions `json:"preconditions,omitempty" protobuf:"bytes,3,opt,name=preconditions"`
}

// LeaderWorkerSetRollbackSpec describes to which revision a set returns, and why.
type LeaderWorkerSetRollbackSpec struct {
	// reason is the reason for the action, kept in status.lastAction. At most 1024 characters.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,1,opt,name=reason"`

	// toRevision is the number of the ControllerRevision to return to. Absent or 0 for the one before the current one.
	// +optional
	ToRevision int64 `json:"toRevision,omitempty" protobuf:"varint,2,opt,name=toRevision"`

	// preconditions must hold for the rollback to happen.
	// +optional
	Preconditions *LeaderWorkerSetPreconditions `json:"preconditions,omitempty" protobuf:"bytes,3,opt,name=preconditions"`
}

// LeaderWorkerSetPreconditions name the state of a LeaderWorkerSet for which an action is meant.
type LeaderWorkerSetPreconditions struct {
	// uid is the UID of the LeaderWorkerSet. Absent for any.
	// +optional
	UID *types.UID `json:"uid,omitempty" protobuf:"bytes,1,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// generation is the generation of the LeaderWorkerSet. Absent for any.
	// +optional
	Generation *int64 `json:"generation,omitempty" protobuf:"varint,2,opt,name=generation"`

	// restarts is the number of restarts of the group to restart, as in status.groups. A request whose group was restarted since is
	// rejected. Allowed only with a group. Absent for any.
	// +optional
	Restarts *int32 `json:"restarts,omitempty" protobuf:"varint,3,opt,name=restarts"`
}

// LeaderWorkerSetActionStatus is the result of an action.
type LeaderWorkerSetActionStatus struct {
	// uid is the UID of the LeaderWorkerSet.
	// +optional
	UID types.UID `json:"uid,omitempty" protobuf:"bytes,1,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// revision is the number of the revision to which the set was rolled back.
	// +optional
	Revision int64 `json:"revision,omitempty" protobuf:"varint,2,opt,name=revision"`

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
