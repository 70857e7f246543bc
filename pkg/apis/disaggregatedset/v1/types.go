// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DisaggregatedSet runs the roles of one inference service, such as prefill and decode, each as LeaderWorkerSets, and rolls them together.
type DisaggregatedSet struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. The name is the prefix of the names of all LeaderWorkerSets of the set.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the roles that the user wants.
	Spec DisaggregatedSetSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// status is what the controller last observed. It can be changed only through the status subresource.
	// +optional
	Status DisaggregatedSetStatus `json:"status,omitempty,omitzero" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DisaggregatedSetList is a list of DisaggregatedSets.
type DisaggregatedSetList struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the DisaggregatedSets of the list.
	Items []DisaggregatedSet `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// DisaggregatedSetSpec describes the roles of a set.
type DisaggregatedSetSpec struct {
	// roles are the parts of the service, from 2 to 10.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	Roles []DisaggregatedRoleSpec `json:"roles" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,1,rep,name=roles"`

	// slices is the number of copies of all roles, from 1 to 100. Each slice has LeaderWorkerSets of its own, and rolls by
	// itself. Defaults to 1.
	// +optional
	// +default=1
	Slices *int32 `json:"slices,omitempty" protobuf:"varint,2,opt,name=slices"`

	// placementPolicy is which slices share the domains of a topology. It takes effect for LeaderWorkerSets that are created later.
	// +optional
	PlacementPolicy *PlacementPolicy `json:"placementPolicy,omitempty" protobuf:"bytes,3,opt,name=placementPolicy"`
}

// DisaggregatedRoleSpec describes a role.
type DisaggregatedRoleSpec struct {
	// name of the role, unique in the set: lower-case letters, digits and '-', at most 63 characters.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// scaling is who decides about the replicas of the role.
	// +optional
	Scaling *RoleScaling `json:"scaling,omitempty" protobuf:"bytes,2,opt,name=scaling"`

	// metadata holds labels and annotations for the LeaderWorkerSets of the role.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero" protobuf:"bytes,3,opt,name=metadata"`

	// spec is the spec of the LeaderWorkerSets of the role. The partition of its rolling update must be 0.
	Spec leaderworkersetv1.LeaderWorkerSetSpec `json:"spec" protobuf:"bytes,4,opt,name=spec"`
}

// RoleScaling is who decides about the replicas of a role.
type RoleScaling struct {
	// mode is Static for the replicas of the role in the set, or External for the replicas of a
	// DisaggregatedSetRoleScaler, which the controller creates and an autoscaler can scale. Defaults to Static.
	// +optional
	// +default="Static"
	Mode RoleScalingMode `json:"mode,omitempty" protobuf:"bytes,1,opt,name=mode,casttype=RoleScalingMode"`
}

// RoleScalingMode is who decides about the replicas of a role.
// +enum
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
	// +optional
	// +default="None"
	Type PlacementPolicyType `json:"type,omitempty" protobuf:"bytes,1,opt,name=type,casttype=PlacementPolicyType"`

	// topology is the key of the node label whose values are the domains. Required unless type is None.
	// +optional
	Topology string `json:"topology,omitempty" protobuf:"bytes,2,opt,name=topology"`
}

// PlacementPolicyType is which slices share the domains of a topology.
// +enum
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
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,1,opt,name=observedGeneration"`

	// roleStatuses holds the counts of each role, in the order of spec.roles.
	// +optional
	// +listType=map
	// +listMapKey=name
	RoleStatuses []RoleStatus `json:"roleStatuses,omitempty" protobuf:"bytes,2,rep,name=roleStatuses"`

	// conditions are Available and Progressing.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,3,rep,name=conditions"`
}

// RoleStatus counts the groups of a role over all slices and revisions.
type RoleStatus struct {
	// name of the role.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// replicas is the number of groups.
	// +optional
	Replicas int32 `json:"replicas,omitempty" protobuf:"varint,2,opt,name=replicas"`

	// readyReplicas is the number of groups that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"varint,3,opt,name=readyReplicas"`

	// updatedReplicas is the number of groups of the current revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty" protobuf:"varint,4,opt,name=updatedReplicas"`
}

// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DisaggregatedSetRoleScaler holds the replicas of one role whose scaling mode is External. The controller creates it;
// autoscalers scale it.
type DisaggregatedSetRoleScaler struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. The name consists of the names of the set and the role, joined by '-'.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec holds the replicas.
	Spec DisaggregatedSetRoleScalerSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// status is what the controller last observed. It can be changed only through the status subresource.
	// +optional
	Status DisaggregatedSetRoleScalerStatus `json:"status,omitempty,omitzero" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DisaggregatedSetRoleScalerList is a list of DisaggregatedSetRoleScalers.
type DisaggregatedSetRoleScalerList struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the DisaggregatedSetRoleScalers of the list.
	Items []DisaggregatedSetRoleScaler `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// DisaggregatedSetRoleScalerSpec holds the replicas of a role.
type DisaggregatedSetRoleScalerSpec struct {
	// replicas is the number of groups of the role: 0 or more. Defaults to 0.
	// +optional
	// +default=0
	Replicas int32 `json:"replicas" protobuf:"varint,1,opt,name=replicas"`
}

// DisaggregatedSetRoleScalerStatus is what the controller last observed of the role.
type DisaggregatedSetRoleScalerStatus struct {
	// replicas is the number of groups of the role.
	// +optional
	Replicas int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`

	// selector selects the leader pods of the role, as a string, for autoscalers.
	// +optional
	Selector string `json:"selector,omitempty" protobuf:"bytes,2,opt,name=selector"`

	// observedGeneration is the generation of the scaler that the controller last processed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,3,opt,name=observedGeneration"`

	// conditions holds Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,4,rep,name=conditions"`
}
