// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodReadinessGroup says how many pods belong to the pod group of the same name, and shows how many of them run. A pod belongs
// to a group by its label batch.jobset-apiserver.io/pod-group; a group needs no such object.
type PodReadinessGroup struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. The object has the name of the group.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the group.
	// +optional
	Spec PodReadinessGroupSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is what the controller last observed.
	// +optional
	Status PodReadinessGroupStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodReadinessGroupList is a list of PodReadinessGroups.
type PodReadinessGroupList struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the PodReadinessGroups of the list.
	Items []PodReadinessGroup `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// PodReadinessGroupSpec describes a group of pods.
type PodReadinessGroupSpec struct {
	// minMember is the number of pods that must run for the group to be ready, 1 or more, at most 100000. Absent means the size
	// that the pods or their owners give.
	// +optional
	// +k8s:validation:minimum=1
	MinMember *int32 `json:"minMember,omitempty" protobuf:"varint,1,opt,name=minMember"`

	// readyWhen is what counts for a pod: Running, its phase, or Ready, its condition. Defaults to Running.
	// +optional
	// +default="Running"
	ReadyWhen ReadyWhen `json:"readyWhen,omitempty" protobuf:"bytes,2,opt,name=readyWhen,casttype=ReadyWhen"`
}

// ReadyWhen is what counts for a pod of a group.
// +enum
type ReadyWhen string

const (
	// ReadyWhenRunning counts pods in the phase Running, and those that have succeeded.
	ReadyWhenRunning ReadyWhen = "Running"
	// ReadyWhenReady counts pods whose condition Ready is true, and those that have succeeded.
	ReadyWhenReady ReadyWhen = "Ready"
)

// PodReadinessGroupStatus is the state of a group.
type PodReadinessGroupStatus struct {
	// conditions has Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`

	// phase is Pending until the group is ready for the first time, then Ready, and Degraded while fewer pods than needed run.
	// +optional
	Phase PodReadinessGroupPhase `json:"phase,omitempty" protobuf:"bytes,6,opt,name=phase,casttype=PodReadinessGroupPhase"`

	// pods is the number of pods that belong to the group. Pods that are being deleted, and failed ones, are not counted.
	// +optional
	Pods int32 `json:"pods" protobuf:"varint,2,opt,name=pods"`

	// running is the number of pods that run or have succeeded.
	// +optional
	Running int32 `json:"running" protobuf:"varint,3,opt,name=running"`

	// ready is the number of pods with the label that marks the group as ready.
	// +optional
	Ready int32 `json:"ready" protobuf:"varint,4,opt,name=ready"`

	// readyTime is when the group became ready for the first time.
	// +optional
	ReadyTime *metav1.Time `json:"readyTime,omitempty" protobuf:"bytes,5,opt,name=readyTime"`

	// observedGeneration is the generation of the spec that the controller has taken up.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,7,opt,name=observedGeneration"`
}

// PodReadinessGroupPhase is the state of a group in one word.
// +enum
type PodReadinessGroupPhase string

const (
	// GroupPending means that the group was never ready.
	GroupPending PodReadinessGroupPhase = "Pending"
	// GroupReady means that enough pods of the group run.
	GroupReady PodReadinessGroupPhase = "Ready"
	// GroupDegraded means that the group was ready before, and that fewer pods than needed run now.
	GroupDegraded PodReadinessGroupPhase = "Degraded"
)
