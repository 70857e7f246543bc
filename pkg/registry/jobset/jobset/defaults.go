// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

// SetCreateDefaults fills in what upstream's mutating webhook fills in. It runs on create only, so that the removal of
// such a field by a later write is seen as a removal. A template that is missing altogether stays missing: validation
// refuses it.
func SetCreateDefaults(spec *jobset.JobSetSpec) {
	if spec.SuccessPolicy == nil {
		spec.SuccessPolicy = &jobset.SuccessPolicy{Operator: jobset.OperatorAll}
	}
	if spec.StartupPolicy == nil {
		spec.StartupPolicy = &jobset.StartupPolicy{StartupPolicyOrder: jobset.AnyOrder}
	}
	for i := range spec.ReplicatedJobs {
		setTemplateDefaults(&spec.ReplicatedJobs[i].Template)
	}
	if spec.Network == nil {
		spec.Network = &jobset.Network{}
	}
	if spec.Network.EnableDNSHostnames == nil {
		spec.Network.EnableDNSHostnames = ptr.To(true)
	}
	if spec.Network.PublishNotReadyAddresses == nil {
		spec.Network.PublishNotReadyAddresses = ptr.To(true)
	}
	if spec.FailurePolicy != nil {
		for i := range spec.FailurePolicy.Rules {
			if rule := &spec.FailurePolicy.Rules[i]; rule.Name == "" {
				rule.Name = generatedRuleName(i)
			}
		}
	}
	for i := range spec.VolumeClaimPolicies {
		if policy := &spec.VolumeClaimPolicies[i]; policy.RetentionPolicy == nil {
			policy.RetentionPolicy = defaultRetention()
		}
	}
	setSchedulingDefaults(spec)
}

// setSchedulingDefaults makes one gang of a set that says nothing about its groups, unless its replicatedJobs start one after another.
func setSchedulingDefaults(spec *jobset.JobSetSpec) {
	scheduling := spec.Scheduling
	if scheduling == nil || scheduling.SchedulingPolicy != nil || len(scheduling.ReplicatedJobs) > 0 ||
		spec.StartupPolicy.StartupPolicyOrder == jobset.InOrder {
		return
	}
	for i := range spec.ReplicatedJobs {
		if len(spec.ReplicatedJobs[i].DependsOn) > 0 {
			return
		}
	}
	scheduling.SchedulingPolicy = &jobset.SchedulingPolicy{Gang: &jobset.GangSchedulingPolicy{}}
}

func setTemplateDefaults(template *batchv1.JobTemplateSpec) {
	if equality.Semantic.DeepEqual(*template, batchv1.JobTemplateSpec{}) {
		return
	}
	if template.Spec.CompletionMode == nil {
		template.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	pod := &template.Spec.Template
	if equality.Semantic.DeepEqual(*pod, corev1.PodTemplateSpec{}) {
		return
	}
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
}

// keepCreateDefaults carries values over that create filled into the items of atomic lists. Server-side apply replaces
// such a list as a whole, so that applying the same manifest again would remove them, and be refused.
func keepCreateDefaults(next, prev *jobset.JobSetSpec) {
	if next.FailurePolicy != nil && prev.FailurePolicy != nil {
		for i := range min(len(next.FailurePolicy.Rules), len(prev.FailurePolicy.Rules)) {
			rule := &next.FailurePolicy.Rules[i]
			if rule.Name == "" && prev.FailurePolicy.Rules[i].Name == generatedRuleName(i) {
				rule.Name = generatedRuleName(i)
			}
		}
	}
	for i := range min(len(next.VolumeClaimPolicies), len(prev.VolumeClaimPolicies)) {
		policy := &next.VolumeClaimPolicies[i]
		if policy.RetentionPolicy == nil && equality.Semantic.DeepEqual(prev.VolumeClaimPolicies[i].RetentionPolicy, defaultRetention()) {
			policy.RetentionPolicy = defaultRetention()
		}
	}
}

func generatedRuleName(index int) string { return "failurePolicyRule" + strconv.Itoa(index) }

func defaultRetention() *jobset.VolumeRetentionPolicy {
	return &jobset.VolumeRetentionPolicy{WhenDeleted: ptr.To(jobset.RetentionPolicyDelete)}
}

// normalizeTemplates keeps of the metadata of embedded templates what the published schema has: the rest would be pruned
// from a custom resource.
func normalizeTemplates(spec *jobset.JobSetSpec) {
	for i := range spec.ReplicatedJobs {
		template := &spec.ReplicatedJobs[i].Template
		template.ObjectMeta = strategy.TemplateMetadata(template.ObjectMeta)
		template.Spec.Template.ObjectMeta = strategy.TemplateMetadata(template.Spec.Template.ObjectMeta)
	}
	for i := range spec.VolumeClaimPolicies {
		for j := range spec.VolumeClaimPolicies[i].Templates {
			claim := &spec.VolumeClaimPolicies[i].Templates[j]
			claim.ObjectMeta = strategy.TemplateMetadata(claim.ObjectMeta)
		}
	}
}
