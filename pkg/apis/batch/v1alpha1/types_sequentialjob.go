// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// +genclient
// +genclient:method=Restart,verb=create,subresource=restart,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.SequentialJobRestart,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.SequentialJobRestart
// +genclient:method=Suspend,verb=create,subresource=suspend,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.SequentialJobSuspend,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.SequentialJobSuspend
// +genclient:method=Resume,verb=create,subresource=resume,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.SequentialJobResume,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.SequentialJobResume
// +genclient:method=Cancel,verb=create,subresource=cancel,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.SequentialJobCancel,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.SequentialJobCancel
// +genclient:method=Retry,verb=create,subresource=retry,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.SequentialJobRetry,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.SequentialJobRetry
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SequentialJob runs steps one after another: each step is a Job or a JobSet, and begins when the one before has completed.
type SequentialJob struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. The name becomes the prefix of the names of all Jobs, JobSets and pods of the
	// sequence, which limits its length.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the sequence that the user asks for.
	// +optional
	Spec SequentialJobSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is how far the sequence is. It can be changed only through the status subresource and by actions.
	// +optional
	Status SequentialJobStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SequentialJobList is a list of SequentialJobs.
type SequentialJobList struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the SequentialJobs of the list.
	Items []SequentialJob `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// SequentialJobSpec describes the sequence. Its steps are either containers or steps.
type SequentialJobSpec struct {
	// containers run one after another, each as a Job of its own. A container without a name gets step-<index>; names must be
	// unique. Exactly one of containers and steps must be set. At most 100. Finished containers cannot be changed, moved
	// or removed; updateStrategy decides whether the other containers can.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=100
	Containers []corev1.Container `json:"containers,omitempty" protobuf:"bytes,1,rep,name=containers"`

	// template holds what the pods of all steps that are containers have in common: labels, annotations, volumes, service
	// account, node selector, tolerations, init containers, security context and so on. Its containers must be empty, since
	// the steps are the containers. restartPolicy is Never by default, or OnFailure.
	// +optional
	Template *corev1.PodTemplateSpec `json:"template,omitempty" protobuf:"bytes,2,opt,name=template"`

	// steps run one after another. Exactly one of containers and steps must be set. At most 100. Steps that have finished
	// cannot be changed, moved or removed; updateStrategy decides whether the other steps can.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +k8s:validation:maxItems=100
	Steps []SequentialJobStep `json:"steps,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,3,rep,name=steps"`

	// suspend stops the sequence while it is true: the current child is suspended, and no other is started. A child that a
	// queueing system manages is taken out of its queue meanwhile. Absent means false. May be changed at any time.
	// +optional
	Suspend *bool `json:"suspend,omitempty" protobuf:"varint,4,opt,name=suspend"`

	// backoffLimit is the number of retries of each step that is a container, 0 or more. Absent means the default of Jobs, 6.
	// +optional
	// +k8s:validation:minimum=0
	BackoffLimit *int32 `json:"backoffLimit,omitempty" protobuf:"varint,5,opt,name=backoffLimit"`

	// activeDeadlineSeconds is the time in seconds, 1 or more, that the whole sequence may take before it fails with the reason
	// DeadlineExceeded. The time during which it is suspended or waits for quota is not counted. Absent means no limit.
	// +optional
	// +k8s:validation:minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty" protobuf:"varint,6,opt,name=activeDeadlineSeconds"`

	// ttlSecondsAfterFinished is the time in seconds after which a finished sequence is deleted with all of its children. 0
	// deletes it at once; absent keeps it. May be changed after the sequence has finished.
	// +optional
	// +k8s:validation:minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty" protobuf:"varint,7,opt,name=ttlSecondsAfterFinished"`

	// updateStrategy says what a change of unfinished steps does while one of them runs. Defaults to Continue.
	// +optional
	UpdateStrategy *SequentialJobUpdateStrategy `json:"updateStrategy,omitempty" protobuf:"bytes,8,opt,name=updateStrategy"`

	// managedBy names the controller that runs the sequence, as a domain-prefixed path of at most 63 characters. Absent, or
	// jobset-apiserver.io/sequentialjob-controller, means the built-in controller; with any other value the built-in
	// controller changes nothing. Immutable.
	// +optional
	ManagedBy *string `json:"managedBy,omitempty" protobuf:"bytes,9,opt,name=managedBy"`
}

// SequentialJobStep is one step. Exactly one of container, job and jobSet must be set.
type SequentialJobStep struct {
	// name identifies the step. A DNS label, unique within the sequence.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// container runs as a Job in the template of the sequence. Its name defaults to the name of the step.
	// +optional
	Container *corev1.Container `json:"container,omitempty" protobuf:"bytes,2,opt,name=container"`

	// job is run as it is. Its ttlSecondsAfterFinished counts from the end of the step, and deletes the Job only.
	// +optional
	Job *batchv1.JobTemplateSpec `json:"job,omitempty" protobuf:"bytes,3,opt,name=job"`

	// jobSet is run as it is. Its ttlSecondsAfterFinished counts from the end of the step, and deletes the JobSet only.
	// +optional
	JobSet *JobSetTemplateSpec `json:"jobSet,omitempty" protobuf:"bytes,4,opt,name=jobSet"`
}

// JobSetTemplateSpec is the JobSet that a step creates.
type JobSetTemplateSpec struct {
	// metadata holds the labels and annotations of the JobSet. Its other fields are not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the spec of the JobSet.
	Spec jobsetv1alpha2.JobSetSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

// SequentialJobUpdateStrategy says what a change of unfinished steps does while one of them runs.
type SequentialJobUpdateStrategy struct {
	// type is Continue, Restart or Forbid. Defaults to Continue.
	// +optional
	// +default="Continue"
	Type SequentialJobUpdateStrategyType `json:"type,omitempty" protobuf:"bytes,1,opt,name=type,casttype=SequentialJobUpdateStrategyType"`
}

// SequentialJobUpdateStrategyType is what a change of unfinished steps does while one of them runs.
// +enum
type SequentialJobUpdateStrategyType string

const (
	// UpdateContinue lets the step that runs go on with what it was started with. Later ones use the new spec.
	UpdateContinue SequentialJobUpdateStrategyType = "Continue"
	// UpdateRestart stops the step that runs if it was changed, and runs it again with the new spec.
	UpdateRestart SequentialJobUpdateStrategyType = "Restart"
	// UpdateForbid refuses changes of steps once a step has started.
	UpdateForbid SequentialJobUpdateStrategyType = "Forbid"
)
