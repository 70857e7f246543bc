// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// Prefix is a prefix of label keys, with the keys by which pods form groups. A pod may belong to one group of each prefix.
type Prefix struct {
	// Name is the prefix itself. Metrics have it as the value of their label `family`.
	Name string
	// GroupKey is the label with the name of the group, ReadyKey the label that says that the group is ready, and SizeKey the label or
	// annotation with the number of its pods.
	GroupKey, ReadyKey, SizeKey string
}

// Prefixes are all prefixes that count.
var Prefixes = []Prefix{
	{
		Name:     batchv1alpha1.GroupName,
		GroupKey: batchv1alpha1.PodGroupKey, ReadyKey: batchv1alpha1.PodGroupReadyKey, SizeKey: batchv1alpha1.PodGroupSizeKey,
	},
	{
		Name:     "podgroup.jhwagner.github.io",
		GroupKey: batchv1alpha1.LegacyPodGroupKey, ReadyKey: batchv1alpha1.LegacyPodGroupReadyKey, SizeKey: batchv1alpha1.LegacyPodGroupSizeKey,
	},
}

// Phase is the phase of a pod in one byte.
type Phase uint8

// The phases of pods.
const (
	Pending Phase = iota
	Running
	Succeeded
	Failed
)

// Pod is what decisions use of a pod.
type Pod struct {
	Name string
	UID  types.UID
	// Owner is what controls the pod.
	Owner Owner
	// SizeLabel and SizeAnnotation are the sizes that the pod states; empty if it states none.
	SizeLabel, SizeAnnotation string
	// Created is when the pod was created, and Ended when it ended, if it has, in seconds since 1970.
	Created, Ended int64
	Phase          Phase
	// Ready is the condition of the pod. Terminating means that the pod is being deleted. Labeled means that it has the label of pods whose
	// group is ready.
	Ready, Terminating, Labeled bool
}

// Kinds of owners whose size can be read.
const (
	KindJob             = "Job"
	KindJobSet          = "JobSet"
	KindStatefulSet     = "StatefulSet"
	KindReplicaSet      = "ReplicaSet"
	KindLeaderWorkerSet = "LeaderWorkerSet"
)

// Owner names what controls a pod. The kind is empty for one whose size cannot be read, and all is for a pod without an owner.
type Owner struct {
	Kind, Name string
	UID        types.UID
}

// OwnerSize is how many pods of a group an owner is meant to have.
type OwnerSize struct {
	// Root is what the number is of: that of a ReplicaSet is its Deployment.
	Root types.UID
	// Pods is the number. It counts once for each root.
	Pods int32
	// Unknown means that the owner does not say, for example because it is gone. Its pods that exist count instead.
	Unknown bool
}
