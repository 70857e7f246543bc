// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SequentialJob runs steps one after another: each step is a Job or a JobSet, and begins when the one before has completed.
type SequentialJob struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. The name becomes the prefix of the names of all Jobs, JobSets and pods of the
	// sequence, which limits its length.
	metav1.ObjectMeta

	// spec is the sequence that the user asks for.
	Spec SequentialJobSpec

	// status is how far the sequence is. It can be changed only through the status subresource and by actions.
	Status SequentialJobStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SequentialJobList is a list of SequentialJobs.
type SequentialJobList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the SequentialJobs of the list.
	Items []SequentialJob
}

// SequentialJobSpec describes the sequence. Its steps are either containers or steps.
type SequentialJobSpec struct {
	// containers run one after another, each as a Job of its own. A container without a name gets step-<index>; names must be
	// unique. Exactly one of containers and steps must be set. At most 100. Finished containers cannot be changed, moved
	// or removed; updateStrategy decides whether the other containers can.
	Containers []corev1.Container

	// template holds what the pods of all steps that are containers have in common: labels, annotations, volumes, service
	// account, node selector, tolerations, init containers, security context and so on. Its containers must be empty, since
	// the steps are the containers. restartPolicy is Never by default, or OnFailure.
	Template *corev1.PodTemplateSpec

	// steps run one after another. Exactly one of containers and steps must be set. At most 100. Steps that have finished
	// cannot be changed, moved or removed; updateStrategy decides whether the other steps can.
	Steps []SequentialJobStep

	// suspend stops the sequence while it is true: the current child is suspended, and no other is started. A child that a
	// queueing system manages is taken out of its queue meanwhile. Absent means false. May be changed at any time.
	Suspend *bool

	// backoffLimit is the number of retries of each step that is a container, 0 or more. Absent means the default of Jobs, 6.
	BackoffLimit *int32

	// activeDeadlineSeconds is the time in seconds, 1 or more, that the whole sequence may take before it fails with the reason
	// DeadlineExceeded. The time during which it is suspended or waits for quota is not counted. Absent means no limit.
	ActiveDeadlineSeconds *int64

	// ttlSecondsAfterFinished is the time in seconds after which a finished sequence is deleted with all of its children. 0
	// deletes it at once; absent keeps it. May be changed after the sequence has finished.
	TTLSecondsAfterFinished *int32

	// updateStrategy says what a change of unfinished steps does while one of them runs. Defaults to Continue.
	UpdateStrategy *SequentialJobUpdateStrategy

	// managedBy names the controller that runs the sequence, as a domain-prefixed path of at most 63 characters. Absent, or
	// jobset-apiserver.io/sequentialjob-controller, means the built-in controller; with any other value the built-in
	// controller changes nothing. Immutable.
	ManagedBy *string
}

// SequentialJobStep is one step. Exactly one of container, job and jobSet must be set.
type SequentialJobStep struct {
	// name identifies the step. A DNS label, unique within the sequence.
	Name string

	// container runs as a Job in the template of the sequence. Its name defaults to the name of the step.
	Container *corev1.Container

	// job is run as it is. Its ttlSecondsAfterFinished counts from the end of the step, and deletes the Job only.
	Job *batchv1.JobTemplateSpec

	// jobSet is run as it is. Its ttlSecondsAfterFinished counts from the end of the step, and deletes the JobSet only.
	JobSet *JobSetTemplateSpec
}

// JobSetTemplateSpec is the JobSet that a step creates.
type JobSetTemplateSpec struct {
	// metadata holds the labels and annotations of the JobSet. Its other fields are not used.
	metav1.ObjectMeta

	// spec is the spec of the JobSet.
	Spec jobset.JobSetSpec
}

// SequentialJobUpdateStrategy says what a change of unfinished steps does while one of them runs.
type SequentialJobUpdateStrategy struct {
	// type is Continue, Restart or Forbid. Defaults to Continue.
	Type SequentialJobUpdateStrategyType
}

// SequentialJobUpdateStrategyType is what a change of unfinished steps does while one of them runs.
type SequentialJobUpdateStrategyType string

const (
	// UpdateContinue lets the step that runs go on with what it was started with. Later ones use the new spec.
	UpdateContinue SequentialJobUpdateStrategyType = "Continue"
	// UpdateRestart stops the step that runs if it was changed, and runs it again with the new spec.
	UpdateRestart SequentialJobUpdateStrategyType = "Restart"
	// UpdateForbid refuses changes of steps once a step has started.
	UpdateForbid SequentialJobUpdateStrategyType = "Forbid"
)
