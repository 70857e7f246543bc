// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateJobTemplate checks the schema of an embedded Job template.
func ValidateJobTemplate(template *batchv1.JobTemplateSpec, path *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(*template, batchv1.JobTemplateSpec{}) {
		return field.ErrorList{field.Required(path, "must be set: it describes the Jobs, with their containers in spec.template.spec.containers")}
	}
	c := &checker{}
	c.schema(reflect.ValueOf(&template.Spec), path.Child("spec"))
	return append(c.errs, ValidatePodTemplate(&template.Spec.Template, path.Child("spec", "template"))...)
}

// ValidatePodTemplate checks the schema of an embedded pod template.
func ValidatePodTemplate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(*template, corev1.PodTemplateSpec{}) {
		return field.ErrorList{field.Required(path, "must be set: it describes the pods, with their containers in spec.containers")}
	}
	c := &checker{}
	if template.Spec.Containers == nil {
		c.errs = append(c.errs, field.Required(path.Child("spec", "containers"), "must list the containers of the pod"))
	}
	c.schema(reflect.ValueOf(&template.Spec), path.Child("spec"))
	return c.errs
}

// ValidateClaimSpec checks the schema of an embedded volume claim.
func ValidateClaimSpec(spec *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	c := &checker{}
	c.schema(reflect.ValueOf(spec), path)
	return c.errs
}
