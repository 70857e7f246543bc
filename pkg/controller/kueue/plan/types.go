// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what to do with the Workloads of Kueue: pure functions over what is used of its API.
//
// The types below are a subset of the kinds of kueue.x-k8s.io/v1beta2. What is not here is neither read nor changed: all writes are
// patches of single fields.
package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Group and Version are the group and the version of Kueue's API.
const (
	Group   = "kueue.x-k8s.io"
	Version = "v1beta2"
)

// Labels, annotations and finalizers of Kueue.
const (
	// QueueKey is the label that names the LocalQueue in which an object is admitted.
	QueueKey = Group + "/queue-name"
	// PriorityClassKey is the label that names the WorkloadPriorityClass of an object.
	PriorityClassKey = Group + "/priority-class"
	// MaxExecTimeKey is the label that limits the time that an object may run after its admission, in seconds.
	MaxExecTimeKey = Group + "/max-exec-time-seconds"
	// JobUIDKey is the label of a Workload with the UID of its owner.
	JobUIDKey = Group + "/job-uid"
	// PodSetKey is the label of pods that names their pod set.
	PodSetKey = Group + "/podset"
	// LocalQueueKey and ClusterQueueKey are labels of pods that name the queues in which they were admitted.
	LocalQueueKey   = Group + "/local-queue-name"
	ClusterQueueKey = Group + "/cluster-queue-name"
	// SuspendingParentKey is the annotation of the pod templates of objects whose pods Kueue admits.
	SuspendingParentKey = Group + "/pod-suspending-parent"
	// WorkloadKey is the annotation of pods that names their Workload.
	WorkloadKey = Group + "/workload"
	// TopologyGate is the scheduling gate of pods that Kueue places by topology.
	TopologyGate = Group + "/topology"
	// InUseFinalizer keeps a Workload until its owner has given the quota back.
	InUseFinalizer = Group + "/resource-in-use"
)

// Types of the conditions of Workloads.
const (
	ConditionQuotaReserved = "QuotaReserved"
	ConditionAdmitted      = "Admitted"
	ConditionEvicted       = "Evicted"
	ConditionFinished      = "Finished"
	ConditionPodsReady     = "PodsReady"
	ConditionRequeued      = "Requeued"
	ConditionPreempted     = "Preempted"
)

// ReasonPreempted is the reason of ConditionEvicted of a Workload whose quota another one needs.
const ReasonPreempted = "Preempted"

// Workload is what is used of a Workload: pods that are admitted together.
type Workload struct {
	metav1.TypeMeta   `json:""`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WorkloadSpec   `json:"spec,omitempty"`
	Status WorkloadStatus `json:"status,omitempty"`
}

// WorkloadSpec is what a Workload asks for.
type WorkloadSpec struct {
	// PodSets are the pods, at most 18 sets. They are kept of the Workloads of sequences only.
	PodSets []PodSet `json:"podSets,omitempty"`
	// QueueName is the name of the LocalQueue.
	QueueName string `json:"queueName,omitempty"`
	// PriorityClassRef names the class that Priority comes from.
	PriorityClassRef *PriorityClassRef `json:"priorityClassRef,omitempty"`
	// Priority orders Workloads in their queue.
	Priority *int32 `json:"priority,omitempty"`
	// Active is false for a Workload that is kept out of its queue. Absent means true.
	Active *bool `json:"active,omitempty"`
	// MaximumExecutionTimeSeconds limits the time after the admission.
	MaximumExecutionTimeSeconds *int32 `json:"maximumExecutionTimeSeconds,omitempty"`
}

// PodSet is a number of pods of one template.
type PodSet struct {
	Name     string                 `json:"name"`
	Template corev1.PodTemplateSpec `json:"template"`
	Count    int32                  `json:"count"`
}

// PriorityClassRef names a class of priority.
type PriorityClassRef struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

// WorkloadStatus is what Kueue and the controller of the owner say about a Workload.
type WorkloadStatus struct {
	Conditions      []metav1.Condition    `json:"conditions,omitempty"`
	Admission       *Admission            `json:"admission,omitempty"`
	AdmissionChecks []AdmissionCheckState `json:"admissionChecks,omitempty"`
}

// Admission says where the pods may run.
type Admission struct {
	ClusterQueue      string             `json:"clusterQueue"`
	PodSetAssignments []PodSetAssignment `json:"podSetAssignments,omitempty"`
}

// PodSetAssignment says where those of one pod set may run.
type PodSetAssignment struct {
	Name string `json:"name"`
	// Flavors are the names of ResourceFlavors by resource.
	Flavors map[corev1.ResourceName]string `json:"flavors,omitempty"`
	// TopologyAssignment is set for pods that Kueue places by topology.
	TopologyAssignment map[string]any `json:"topologyAssignment,omitempty"`
}

// AdmissionCheckState is the state of an admission check.
type AdmissionCheckState struct {
	Name          string         `json:"name"`
	State         string         `json:"state"`
	Message       string         `json:"message,omitempty"`
	PodSetUpdates []PodSetUpdate `json:"podSetUpdates,omitempty"`
}

// PodSetUpdate is what an admission check adds to the pods of one pod set.
type PodSetUpdate struct {
	Name         string              `json:"name"`
	Labels       map[string]string   `json:"labels,omitempty"`
	Annotations  map[string]string   `json:"annotations,omitempty"`
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
}

// ResourceFlavor is what is used of a ResourceFlavor: a kind of nodes.
type ResourceFlavor struct {
	metav1.TypeMeta   `json:""`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ResourceFlavorSpec `json:"spec,omitempty"`
}

// ResourceFlavorSpec describes the nodes.
type ResourceFlavorSpec struct {
	NodeLabels  map[string]string   `json:"nodeLabels,omitempty"`
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// WorkloadPriorityClass is what is used of a WorkloadPriorityClass.
type WorkloadPriorityClass struct {
	metav1.TypeMeta   `json:""`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Value int32 `json:"value"`
}

// Active returns whether the Workload takes part in its queue.
func (w *Workload) Active() bool { return ptr.Deref(w.Spec.Active, true) }

// Condition returns a condition of the Workload; nil if it has none of that type.
func (w *Workload) Condition(conditionType string) *metav1.Condition {
	i := slices.IndexFunc(w.Status.Conditions, func(c metav1.Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &w.Status.Conditions[i]
}

// Is returns whether a condition of the Workload is True.
func (w *Workload) Is(conditionType string) bool {
	c := w.Condition(conditionType)
	return c != nil && c.Status == metav1.ConditionTrue
}

// Owner returns the reference to the object that the Workload is for; nil if it has none.
func (w *Workload) Owner() *metav1.OwnerReference { return metav1.GetControllerOfNoCopy(w) }

// OwnerUID returns the UID of the object that the Workload is for.
func (w *Workload) OwnerUID() types.UID {
	if owner := w.Owner(); owner != nil {
		return owner.UID
	}
	return ""
}
