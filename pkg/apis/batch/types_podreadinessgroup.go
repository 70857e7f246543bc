// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodReadinessGroup says how many pods belong to the pod group of the same name, and shows how many of them run. A pod belongs
// to a group by its label batch.jobset-apiserver.io/pod-group; a group needs no such object.
type PodReadinessGroup struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. The object has the name of the group.
	metav1.ObjectMeta

	// spec describes the group.
	Spec PodReadinessGroupSpec

	// status is what the controller last observed.
	Status PodReadinessGroupStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodReadinessGroupList is a list of PodReadinessGroups.
type PodReadinessGroupList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the PodReadinessGroups of the list.
	Items []PodReadinessGroup
}

// PodReadinessGroupSpec describes a group of pods.
type PodReadinessGroupSpec struct {
	// minMember is the number of pods that must run for the group to be ready, 1 or more, at most 100000. Absent means the size
	// that the pods or their owners give.
	MinMember *int32

	// readyWhen is what counts for a pod: Running, its phase, or Ready, its condition. Defaults to Running.
	ReadyWhen ReadyWhen
}

// ReadyWhen is what counts for a pod of a group.
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
	Conditions []metav1.Condition

	// phase is Pending until the group is ready for the first time, then Ready, and Degraded while fewer pods than needed run.
	Phase PodReadinessGroupPhase

	// pods is the number of pods that belong to the group. Pods that are being deleted, and failed ones, are not counted.
	Pods int32

	// running is the number of pods that run or have succeeded.
	Running int32

	// ready is the number of pods with the label that marks the group as ready.
	Ready int32

	// readyTime is when the group became ready for the first time.
	ReadyTime *metav1.Time

	// observedGeneration is the generation of the spec that the controller has taken up.
	ObservedGeneration int64
}

// PodReadinessGroupPhase is the state of a group in one word.
type PodReadinessGroupPhase string

const (
	// GroupPending means that the group was never ready.
	GroupPending PodReadinessGroupPhase = "Pending"
	// GroupReady means that enough pods of the group run.
	GroupReady PodReadinessGroupPhase = "Ready"
	// GroupDegraded means that the group was ready before, and that fewer pods than needed run now.
	GroupDegraded PodReadinessGroupPhase = "Degraded"
)
