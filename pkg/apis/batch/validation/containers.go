// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

// podContainers is the path of containers in the template that steps share. Errors there are moved to the steps.
const podContainers = "spec.template.spec.containers"

// validateContainers checks the template, and the steps that are containers, as the API would check the Jobs that they result
// in. All containers are checked in one pod, so that the template is checked once, not once for each step.
func validateContainers(spec *batch.SequentialJobSpec, steps []step, ManagedByOther bool) field.ErrorList {
	path := field.NewPath("spec", "template")
	errs := validateTemplate(spec.Template, path)
	job, containers := sharedJob(spec, steps)
	if len(containers) == 0 && spec.Template == nil {
		return errs
	}
	found := podtemplate.ValidatePodTemplate(&job.Spec.Template, path)
	if !ManagedByOther {
		found = append(found, podtemplate.ValidateJob(job, nil)...)
		found = append(found, podtemplate.ValidateComplete(job, nil)...)
	}
	for _, err := range found {
		if moved := moveToStep(err, containers); moved != nil {
			errs = append(errs, moved)
		}
	}
	return errs
}

// sharedJob returns a Job with the template and all containers, and the steps that these are, in the same order.
func sharedJob(spec *batch.SequentialJobSpec, steps []step) (*batchv1.JobTemplateSpec, []*step) {
	job := &batchv1.JobTemplateSpec{}
	pod := &job.Spec.Template
	if spec.Template != nil {
		*pod = *spec.Template
	}
	pod.Spec.Containers = []corev1.Container{}
	pod.Spec.RestartPolicy = "" // checked with the template
	var containers []*step
	for i := range steps {
		if s := &steps[i]; s.container != nil {
			containers = append(containers, s)
			pod.Spec.Containers = append(pod.Spec.Containers, *s.container)
		}
	}
	return job, containers
}

// moveToStep puts an error at the field of the step that it is about. It returns nil for errors that the pods of single steps
// do not have: two containers of one name, a pod without containers, and names of steps, which are reported as such.
func moveToStep(err *field.Error, containers []*step) *field.Error {
	rest, inContainers := strings.CutPrefix(err.Field, podContainers)
	if !inContainers {
		return err
	}
	number, rest, inItem := strings.Cut(strings.TrimPrefix(rest, "["), "]")
	if !inItem {
		return nil
	}
	i, parseErr := strconv.Atoi(number)
	if parseErr != nil || i >= len(containers) {
		return err
	}
	s := containers[i]
	if rest == "" || rest == ".name" && s.inContainers {
		return nil
	}
	moved := *err
	moved.Field = s.containerPath().String() + rest
	return &moved
}

// validateTemplate checks what the template must not say, because the sequence does.
func validateTemplate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	if template == nil {
		return nil
	}
	var errs field.ErrorList
	if len(template.Spec.Containers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "containers"),
			"must be empty: each step has a container of its own; make these containers steps"))
	}
	if policy := template.Spec.RestartPolicy; policy != "" && !slices.Contains(jobRestartPolicies, policy) {
		errs = append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), policy, jobRestartPolicies))
	}
	return errs
}
