// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSetRestart recreates groups of a LeaderWorkerSet: it is created as leaderworkersets/<name>/restart and
// returned with its status set.
type LeaderWorkerSetRestart struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the LeaderWorkerSet.
	metav1.ObjectMeta

	// spec describes the request.
	Spec LeaderWorkerSetRestartSpec

	// status is the result of the request, set by the server.
	Status LeaderWorkerSetActionStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSetRollback returns a LeaderWorkerSet to a former revision: it is created as
// leaderworkersets/<name>/rollback and returned with its status set.
type LeaderWorkerSetRollback struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the LeaderWorkerSet.
	metav1.ObjectMeta

	// spec describes the request.
	Spec LeaderWorkerSetRollbackSpec

	// status is the result of the request, set by the server.
	Status LeaderWorkerSetActionStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSetPause pauses the rolling update of a LeaderWorkerSet: it is created as leaderworkersets/<name>/pause
// and returned with its status set.
type LeaderWorkerSetPause struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the LeaderWorkerSet.
	metav1.ObjectMeta

	// spec describes the request.
	Spec LeaderWorkerSetActionSpec

	// status is the result of the request, set by the server.
	Status LeaderWorkerSetActionStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSetResume resumes the rolling update of a LeaderWorkerSet: it is created as
// leaderworkersets/<name>/resume and returned with its status set.
type LeaderWorkerSetResume struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. Its name, if there is one, must be the name of the LeaderWorkerSet.
	metav1.ObjectMeta

	// spec describes the request.
	Spec LeaderWorkerSetActionSpec

	// status is the result of the request, set by the server.
	Status LeaderWorkerSetActionStatus
}

// LeaderWorkerSetActionSpec describes why a rolling update is paused or resumed.
type LeaderWorkerSetActionSpec struct {
	// reason is the reason for the action, kept in status.lastAction. At most 1024 characters.
	Reason string

	// preconditions must hold for the action to happen.
	Preconditions *LeaderWorkerSetPreconditions
}

// LeaderWorkerSetRestartSpec describes which groups are restarted, and why.
type LeaderWorkerSetRestartSpec struct {
	// reason is the reason for the action, kept in status.lastAction. At most 1024 characters.
	Reason string

	// group is the index of the group to restart. Absent for all groups, which are restarted a few at a time, as in a rolling update.
	Group *int32

	// preconditions must hold for the restart to happen.
	Preconditions *LeaderWorkerSetPreconditions
}

// LeaderWorkerSetRollbackSpec describes to which revision a set returns, and why.
type LeaderWorkerSetRollbackSpec struct {
	// reason is the reason for the action, kept in status.lastAction. At most 1024 characters.
	Reason string

	// toRevision is the number of the ControllerRevision to return to. Absent or 0 for the one before the current one.
	ToRevision int64

	// preconditions must hold for the rollback to happen.
	Preconditions *LeaderWorkerSetPreconditions
}

// LeaderWorkerSetPreconditions name the state of a LeaderWorkerSet for which an action is meant.
type LeaderWorkerSetPreconditions struct {
	// uid is the UID of the LeaderWorkerSet. Absent for any.
	UID *types.UID

	// generation is the generation of the LeaderWorkerSet. Absent for any.
	Generation *int64

	// restarts is the number of restarts of the group to restart, as in status.groups. A request whose group was restarted since is
	// rejected. Allowed only with a group. Absent for any.
	Restarts *int32
}

// LeaderWorkerSetActionStatus is the result of an action.
type LeaderWorkerSetActionStatus struct {
	// uid is the UID of the LeaderWorkerSet.
	UID types.UID

	// revision is the number of the revision to which the set was rolled back.
	Revision int64

	// user is the name of the user whose request took effect. Empty when it changed nothing.
	User string

	// time is when it took effect. Absent when it changed nothing.
	Time *metav1.MicroTime

	// message says what happened, for humans.
	Message string
}
