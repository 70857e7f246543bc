// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package volumeclaims

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// compare returns how an existing claim differs from the template and the policy.
func compare(policy *jobset.VolumeClaimPolicy, template, claim *corev1.PersistentVolumeClaim, policyPath,
	templatePath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if fields := differing(&template.Spec, &claim.Spec); len(fields) > 0 {
		errs = append(errs, field.Invalid(templatePath.Child("spec"), template.Spec, fmt.Sprintf(
			"must equal the spec of volume claim %s, which exists: %s differ; change the template, rename it or delete the claim",
			claim.Name, strings.Join(fields, ", "))))
	}
	if !retains(policy) {
		errs = append(errs, field.Invalid(policyPath.Child("retentionPolicy", "whenDeleted"), whenDeleted(policy), fmt.Sprintf(
			"must be %s, because volume claim %s exists and would be deleted with this JobSet; or rename the template, or delete the claim",
			jobset.RetentionPolicyRetain, claim.Name)))
	}
	return errs
}

// differing names the fields that the template sets to something else than the claim has. Fields that the template
// leaves open do not count: the main API fills them in (volumeName, storageClassName, volumeMode, …), and comparing all
// of them, as upstream does, would refuse every retained claim of a real cluster.
func differing(template, claim *corev1.PersistentVolumeClaimSpec) []string {
	var fields []string
	check := func(name string, set, equal bool) {
		if set && !equal {
			fields = append(fields, name)
		}
	}
	deepEqual := equality.Semantic.DeepEqual
	check("accessModes", len(template.AccessModes) > 0, deepEqual(template.AccessModes, claim.AccessModes))
	check("selector", template.Selector != nil, deepEqual(template.Selector, claim.Selector))
	check("resources.requests", true, subset(template.Resources.Requests, claim.Resources.Requests))
	check("resources.limits", true, subset(template.Resources.Limits, claim.Resources.Limits))
	check("volumeName", template.VolumeName != "", template.VolumeName == claim.VolumeName)
	check("storageClassName", template.StorageClassName != nil, deepEqual(template.StorageClassName, claim.StorageClassName))
	check("volumeMode", template.VolumeMode != nil, deepEqual(template.VolumeMode, claim.VolumeMode))
	check("dataSource", template.DataSource != nil, deepEqual(template.DataSource, claim.DataSource))
	check("dataSourceRef", template.DataSourceRef != nil, deepEqual(template.DataSourceRef, claim.DataSourceRef))
	check("volumeAttributesClassName", template.VolumeAttributesClassName != nil,
		deepEqual(template.VolumeAttributesClassName, claim.VolumeAttributesClassName))
	return fields
}

func subset(wanted, actual corev1.ResourceList) bool {
	for name, quantity := range wanted {
		if other, ok := actual[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// whenDeleted is what applies on deletion; without a statement that is Delete.
func whenDeleted(policy *jobset.VolumeClaimPolicy) jobset.RetentionPolicyType {
	if policy.RetentionPolicy == nil || policy.RetentionPolicy.WhenDeleted == nil {
		return jobset.RetentionPolicyDelete
	}
	return *policy.RetentionPolicy.WhenDeleted
}

func retains(policy *jobset.VolumeClaimPolicy) bool {
	return whenDeleted(policy) == jobset.RetentionPolicyRetain
}
