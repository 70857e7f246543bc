// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The agent reads few fields of the set and of its pod, and has types of its own for them: those of the API would
// triple its program and its memory. A test compares their names with those of the API.
const (
	disableKey          = "jobset.sigs.k8s.io/disable-in-place-restart"
	attemptKey          = "jobset.sigs.k8s.io/in-place-restart-attempt"
	inPlaceStrategy     = "InPlaceRestart"
	failurePolicyStarts = "FailurePolicy"

	// fieldManager owns the annotation of the pod.
	fieldManager = "in-place-restart-agent"
)

var jobSetVersion = schema.GroupVersion{Group: "jobset.x-k8s.io", Version: "v1alpha2"}

// JobSet is what the agent reads of a set.
type JobSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              JobSetSpec   `json:"spec"`
	Status            JobSetStatus `json:"status"`
}

// JobSetSpec is what the agent reads of the spec.
type JobSetSpec struct {
	FailurePolicy *FailurePolicy `json:"failurePolicy"`
}

// FailurePolicy is what the agent reads of the failure policy.
type FailurePolicy struct {
	RestartStrategy string `json:"restartStrategy"`
}

// JobSetStatus is what the agent reads of the status.
type JobSetStatus struct {
	Previous *int32    `json:"previousInPlaceRestartAttempt"`
	Current  *int32    `json:"currentInPlaceRestartAttempt"`
	Attempts []Attempt `json:"attempts"`
}

// Attempt is what the agent reads of the history of the set. Upstream's controller keeps none.
type Attempt struct {
	Trigger     string            `json:"trigger"`
	RequestTime *metav1.MicroTime `json:"requestTime"`
	EndTime     *metav1.MicroTime `json:"endTime"`
}

// JobSetList is a list of sets.
type JobSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []JobSet `json:"items"`
}

// Pod is what the agent reads of its pod in the answer to its write.
type Pod struct {
	Status struct {
		StartTime             *metav1.Time      `json:"startTime"`
		ContainerStatuses     []ContainerStatus `json:"containerStatuses"`
		InitContainerStatuses []ContainerStatus `json:"initContainerStatuses"`
	} `json:"status"`
}

// ContainerStatus is what the agent reads of the status of a container.
type ContainerStatus struct {
	RestartCount int32 `json:"restartCount"`
}

// restarts is the largest number of restarts of a container.
func (p *Pod) restarts() (n int32) {
	for _, c := range p.Status.ContainerStatuses {
		n = max(n, c.RestartCount)
	}
	for _, c := range p.Status.InitContainerStatuses {
		n = max(n, c.RestartCount)
	}
	return n
}

// waits reports whether the pods of the set wait for each other.
func (s *JobSet) waits() bool {
	_, disabled := s.Annotations[disableKey]
	return !disabled && s.Spec.FailurePolicy != nil && s.Spec.FailurePolicy.RestartStrategy == inPlaceStrategy
}

// DeepCopyObject is needed of objects that are decoded.
func (s *JobSet) DeepCopyObject() runtime.Object {
	c := *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	if s.Spec.FailurePolicy != nil {
		policy := *s.Spec.FailurePolicy
		c.Spec.FailurePolicy = &policy
	}
	c.Status.Previous, c.Status.Current = copyOf(s.Status.Previous), copyOf(s.Status.Current)
	c.Status.Attempts = slices.Clone(s.Status.Attempts)
	for i := range c.Status.Attempts {
		a := &c.Status.Attempts[i]
		a.RequestTime, a.EndTime = a.RequestTime.DeepCopy(), a.EndTime.DeepCopy()
	}
	return &c
}

// DeepCopyObject is needed of lists that are decoded.
func (l *JobSetList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = make([]JobSet, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*JobSet)
	}
	return &c
}

func copyOf(n *int32) *int32 {
	if n == nil {
		return nil
	}
	c := *n
	return &c
}

// newScheme knows the types that the agent watches, and those of every API.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(jobSetVersion.WithKind("JobSet"), &JobSet{})
	scheme.AddKnownTypeWithName(jobSetVersion.WithKind("JobSetList"), &JobSetList{})
	metav1.AddToGroupVersion(scheme, jobSetVersion)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}
