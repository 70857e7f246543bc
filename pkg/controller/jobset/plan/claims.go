// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// createClaims creates volume claims.
func createClaims(s state) changes {
	return changes{plan: Plan{CreateClaims: missingClaims(s.Observed)}}
}

// missingClaims returns the volume claims that do not exist yet (docs/reference/jobset.md#volume-claims).
func missingClaims(o Observed) []*corev1.PersistentVolumeClaim {
	var missing []*corev1.PersistentVolumeClaim
	for _, policy := range o.JobSet.Spec.VolumeClaimPolicies {
		for i := range policy.Templates {
			if template := &policy.Templates[i]; !o.Claims.Has(helper.ClaimName(o.JobSet.Name, template.Name)) {
				missing = append(missing, newClaim(o.JobSet, template, policy.RetentionPolicy))
			}
		}
	}
	return missing
}

// newClaim builds a claim. Only one that goes with the set is owned by it.
func newClaim(js *jobsetv1alpha2.JobSet, template *corev1.PersistentVolumeClaim,
	retention *jobsetv1alpha2.VolumeRetentionPolicy) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:        helper.ClaimName(js.Name, template.Name),
			Namespace:   js.Namespace,
			Labels:      hostplan.Merged(template.Labels, map[string]string{jobsetv1alpha2.JobSetNameKey: js.Name}),
			Annotations: maps.Clone(template.Annotations),
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if retention != nil && ptr.Deref(retention.WhenDeleted, "") == jobsetv1alpha2.RetentionPolicyDelete {
		claim.OwnerReferences = []metav1.OwnerReference{ownerReference(js)}
	}
	return claim
}

// claimVolumes returns the volumes that a pod needs for the claims which its containers mount.
func claimVolumes(js *jobsetv1alpha2.JobSet, pod *corev1.PodSpec) []corev1.Volume {
	var volumes []corev1.Volume
	for _, policy := range js.Spec.VolumeClaimPolicies {
		for i := range policy.Templates {
			template := &policy.Templates[i]
			if mounts(pod, template.Name) {
				source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: helper.ClaimName(js.Name, template.Name)}
				volumes = append(volumes, corev1.Volume{
					Name: template.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source},
				})
			}
		}
	}
	return volumes
}

func mounts(pod *corev1.PodSpec, volume string) bool {
	return slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
	})
}
