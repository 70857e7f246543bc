// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
)

// Keys of labels and annotations (docs/reference/leaderworkerset.md#disaggregatedset).
const (
	// SetNameLabelKey is on all children and their pods: the name of the set.
	SetNameLabelKey = "disaggregatedset.x-k8s.io/name"
	// RoleLabelKey is the name of the role.
	RoleLabelKey = "disaggregatedset.x-k8s.io/role"
	// SliceLabelKey is the index of the slice.
	SliceLabelKey = "disaggregatedset.x-k8s.io/slice"
	// RevisionLabelKey is the revision.
	RevisionLabelKey = "disaggregatedset.x-k8s.io/revision"
	// InitialReplicasAnnotationKey is on LeaderWorkerSets of a former revision: their replicas when the rolling update began.
	InitialReplicasAnnotationKey = "disaggregatedset.x-k8s.io/initial-replicas"
)

// Conditions and their reasons.
const (
	// ConditionAvailable means that all roles are ready and updated.
	ConditionAvailable = "Available"
	// ConditionProgressing means that roles are being created, or rolled.
	ConditionProgressing = "Progressing"
	// ConditionChildCreationFailure means that children of the set cannot be created or updated: the API refuses them, other objects have
	// their names, or another party undoes each write. It has the reasons of JobCreationFailure of JobSets, and NameConflict.
	// Upstream has no such condition.
	ConditionChildCreationFailure = "ChildCreationFailure"
	// ConditionRolesBlocked means that a fault keeps a LeaderWorkerSet of the set from having all its groups. Its reason is the reason of the
	// LeaderWorkerSet, so that a fault has one word in all kinds. Upstream has no such condition.
	ConditionRolesBlocked = "RolesBlocked"
	// ConditionReady is the condition of a scaler that has a role.
	ConditionReady = "Ready"

	// ReasonAllRolesReady is the reason of Available.
	ReasonAllRolesReady = "AllRolesReady"
	// ReasonRolloutInProgress is the reason of Progressing.
	ReasonRolloutInProgress = "RolloutInProgress"
	// ReasonChildUnreadable is the reason of Progressing while the set waits for a child that the server cannot read.
	ReasonChildUnreadable = reasons.ChildUnreadable
	// ReasonRolesUnblocked is the reason of RolesBlocked, which is False, once no LeaderWorkerSet has a fault.
	ReasonRolesUnblocked = "RolesUnblocked"
	// ReasonBound is the reason of Ready.
	ReasonBound = "Bound"
)
