// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetvalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

var jobRestartPolicies = []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}

// step is one step of a sequence, in whichever form the spec describes it, with its path in the spec.
type step struct {
	index        int
	name         string
	container    *corev1.Container
	job          *batchv1.JobTemplateSpec
	jobSet       *batch.JobSetTemplateSpec
	path         *field.Path
	inContainers bool // rather than in steps
}

// stepsOf returns the steps in order. They point into the spec.
func stepsOf(spec *batch.SequentialJobSpec, path *field.Path) []step {
	steps := make([]step, 0, len(spec.Containers)+len(spec.Steps))
	for i := range spec.Containers {
		container := &spec.Containers[i]
		steps = append(steps, step{index: i, name: container.Name, container: container, path: path.Child("containers").Index(i),
			inContainers: true})
	}
	for i := range spec.Steps {
		s := &spec.Steps[i]
		steps = append(steps, step{
			index: len(steps), name: s.Name, container: s.Container, job: s.Job, jobSet: s.JobSet, path: path.Child("steps").Index(i),
		})
	}
	return steps
}

// childKind is the kind of the child of the step.
func (s *step) childKind() batch.StepKind {
	if s.jobSet != nil {
		return batch.StepKindJobSet
	}
	return batch.StepKindJob
}

// containerPath is the path of the container of a step that is one.
func (s *step) containerPath() *field.Path {
	if s.inContainers {
		return s.path
	}
	return s.path.Child("container")
}

// childName is the name of the child of a step.
func childName(sequence string, index int) string { return fmt.Sprintf("%s-%d", sequence, index) }

// validateStep checks that a step is one thing, and what its Job or JobSet would be refused for.
func validateStep(sj *batch.SequentialJob, s *step, opts Options) field.ErrorList {
	var set []string
	if s.container != nil {
		set = append(set, "container")
	}
	if s.job != nil {
		set = append(set, "job")
	}
	if s.jobSet != nil {
		set = append(set, "jobSet")
	}
	switch {
	case len(set) == 0:
		return field.ErrorList{field.Required(s.path, "must have exactly one of container, job and jobSet")}
	case len(set) > 1:
		return field.ErrorList{field.Invalid(s.path, field.OmitValueType{}, "must have exactly one of container, job and jobSet, but has "+
			strings.Join(set, " and "))}
	case s.job != nil:
		return validateJobStep(s.job, s.path.Child("job"), ManagedByOther(&sj.Spec))
	case s.jobSet != nil:
		return validateJobSetStep(sj, s, opts)
	}
	return nil
}

// validateJobStep checks a Job as its API would, as far as that is known before admission webhooks have seen it.
func validateJobStep(template *batchv1.JobTemplateSpec, path *field.Path, ManagedByOther bool) field.ErrorList {
	errs := podtemplate.ValidateJobTemplate(template, path)
	if ManagedByOther || len(errs) > 0 {
		return errs
	}
	if template.Spec.Template.Spec.RestartPolicy == "" {
		errs = append(errs, field.Required(path.Child("spec", "template", "spec", "restartPolicy"),
			"must be Never or OnFailure, because Jobs have no default"))
	}
	return append(errs, podtemplate.ValidateJob(template, path)...)
}

// Child returns the JobSet that a step with the index creates, as far as validation looks at it.
func Child(sj *batch.SequentialJob, index int, template *batch.JobSetTemplateSpec, opts Options) *jobset.JobSet {
	child := &jobset.JobSet{Spec: *template.Spec.DeepCopy()}
	child.Name, child.Namespace = childName(sj.Name, index), sj.Namespace
	child.Labels, child.Annotations = template.Labels, template.Annotations
	opts.Default(&child.Spec)
	return child
}

// validateJobSetStep checks the JobSet of a step as its API does, and reports its errors at the fields of the sequence. What is
// wrong with its name is reported with the names of all children.
func validateJobSetStep(sj *batch.SequentialJob, s *step, opts Options) field.ErrorList {
	if len(s.jobSet.Spec.ReplicatedJobs) == 0 {
		return field.ErrorList{field.Required(s.path.Child("jobSet", "spec", "replicatedJobs"),
			"must have at least one replicatedJob, so that the step does something")}
	}
	child := Child(sj, s.index, s.jobSet, opts)
	errs := jobsetvalidation.ValidateJobSetCreate(child, opts.Gates)
	errs = slices.DeleteFunc(errs, func(err *field.Error) bool { return err.Field == "metadata.name" })
	for _, err := range errs {
		err.Field = s.path.Child("jobSet").String() + "." + err.Field
	}
	return errs
}
