// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DisaggregatedSet runs the roles of one inference service, such as prefill and decode, each as LeaderWorkerSets, and rolls them together.
type DisaggregatedSet struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. The name is the prefix of the names of all LeaderWorkerSets of the set.
	metav1.ObjectMeta

	// spec describes the roles that the user wants.
	Spec DisaggregatedSetSpec

	// status is what the controller last observed. It can be changed only through the status subresource.
	Status DisaggregatedSetStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DisaggregatedSetList is a list of DisaggregatedSets.
type DisaggregatedSetList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the DisaggregatedSets of the list.
	Items []DisaggregatedSet
}

// DisaggregatedSetSpec describes the roles of a set.
type DisaggregatedSetSpec struct {
	// roles are the parts of the service, from 2 to 10.
	Roles []DisaggregatedRoleSpec

	// slices is the number of copies of all roles, from 1 to 100. Each slice has LeaderWorkerSets of its own, and rolls by
	// itself. Defaults to 1.
	Slices *int32

	// placementPolicy is which slices share the domains of a topology. It takes effect for LeaderWorkerSets that are created later.
	PlacementPolicy *PlacementPolicy
}

// DisaggregatedRoleSpec describes a role.
type DisaggregatedRoleSpec struct {
	// name of the role, unique in the set: lower-case letters, digits and '-', at most 63 characters.
	Name string

	// scaling is who decides about the replicas of the role.
	Scaling *RoleScaling

	// metadata holds labels and annotations for the LeaderWorkerSets of the role.
	metav1.ObjectMeta

	// spec is the spec of the LeaderWorkerSets of the role. The partition of its rolling update must be 0.
	Spec leaderworkerset.LeaderWorkerSetSpec
}

// RoleScaling is who decides about the replicas of a role.
type RoleScaling struct {
	// mode is Static for the replicas of the role in the set, or External for the replicas of a
	// DisaggregatedSetRoleScaler, which the controller creates and an autoscaler can scale. Defaults to Static.
	Mode RoleScalingMode
}

// RoleScalingMode is who decides about the replicas of a role.
type RoleScalingMode string

const (
	// RoleScalingStatic takes the replicas of the role in the set.
	RoleScalingStatic RoleScalingMode = "Static"
	// RoleScalingExternal takes the replicas of the scaler of the role.
	RoleScalingExternal RoleScalingMode = "External"
)

// PlacementPolicy is which slices share the domains of a topology.
type PlacementPolicy struct {
	// type is None, ExclusiveSlice, which keeps the slices of the set apart, or ExclusiveTopology, which keeps other
	// DisaggregatedSets away too. Defaults to None.
	Type PlacementPolicyType

	// topology is the key of the node label whose values are the domains. Required unless type is None.
	Topology string
}

// PlacementPolicyType is which slices share the domains of a topology.
type PlacementPolicyType string

const (
	// PlacementNone lets the scheduler decide.
	PlacementNone PlacementPolicyType = "None"
	// PlacementExclusiveSlice keeps the slices of a set apart.
	PlacementExclusiveSlice PlacementPolicyType = "ExclusiveSlice"
	// PlacementExclusiveTopology keeps other sets away too.
	PlacementExclusiveTopology PlacementPolicyType = "ExclusiveTopology"
)

// DisaggregatedSetStatus is what the controller last observed of a set.
type DisaggregatedSetStatus struct {
	// observedGeneration is the generation of the set that the controller last processed.
	ObservedGeneration int64

	// roleStatuses holds the counts of each role, in the order of spec.roles.
	RoleStatuses []RoleStatus

	// conditions are Available and Progressing.
	Conditions []metav1.Condition
}

// RoleStatus counts the groups of a role over all slices and revisions.
type RoleStatus struct {
	// name of the role.
	Name string

	// replicas is the number of groups.
	Replicas int32

	// readyReplicas is the number of groups that are ready.
	ReadyReplicas int32

	// updatedReplicas is the number of groups of the current revision.
	UpdatedReplicas int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DisaggregatedSetRoleScaler holds the replicas of one role whose scaling mode is External. The controller creates it;
// autoscalers scale it.
type DisaggregatedSetRoleScaler struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. The name consists of the names of the set and the role, joined by '-'.
	metav1.ObjectMeta

	// spec holds the replicas.
	Spec DisaggregatedSetRoleScalerSpec

	// status is what the controller last observed. It can be changed only through the status subresource.
	Status DisaggregatedSetRoleScalerStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DisaggregatedSetRoleScalerList is a list of DisaggregatedSetRoleScalers.
type DisaggregatedSetRoleScalerList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the DisaggregatedSetRoleScalers of the list.
	Items []DisaggregatedSetRoleScaler
}

// DisaggregatedSetRoleScalerSpec holds the replicas of a role.
type DisaggregatedSetRoleScalerSpec struct {
	// replicas is the number of groups of the role: 0 or more. Defaults to 0.
	Replicas int32
}

// DisaggregatedSetRoleScalerStatus is what the controller last observed of the role.
type DisaggregatedSetRoleScalerStatus struct {
	// replicas is the number of groups of the role.
	Replicas int32

	// selector selects the leader pods of the role, as a string, for autoscalers.
	Selector string

	// observedGeneration is the generation of the scaler that the controller last processed.
	ObservedGeneration int64

	// conditions holds Ready.
	Conditions []metav1.Condition
}
