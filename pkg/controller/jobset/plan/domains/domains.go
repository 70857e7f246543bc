// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package domains has what decisions about the domains of exclusive Jobs are made of: which Jobs need a domain, which have to leave
// their domain, what became of these questions, and how pods are kept in their domain.
package domains

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// AskedFor reports whether a set has Jobs with exclusive placement.
func AskedFor(js *jobsetv1alpha2.JobSet) bool {
	for i := range js.Spec.ReplicatedJobs {
		if helper.ExclusiveTopology(js, &js.Spec.ReplicatedJobs[i]) != "" {
			return true
		}
	}
	return false
}

// Jobs are the domains of the Jobs of one replicatedJob.
type Jobs struct {
	// Topology is the label of nodes whose values are the domains; empty without exclusive placement.
	Topology string
	// At is where the Jobs are; nil while that is not decided.
	At *jobsetv1alpha2.ReplicatedJobPlacement
}

// Of returns the domains of the Jobs of a replicatedJob, as stored.
func Of(js *jobsetv1alpha2.JobSet, rj *jobsetv1alpha2.ReplicatedJob) Jobs {
	topology := helper.ExclusiveTopology(js, rj)
	if topology == "" {
		return Jobs{}
	}
	return Jobs{topology, helper.PlacementOf(&js.Status, rj.Name, topology)}
}

// Domain returns the domain of a Job. If it is unknown although there is a placement, the scheduler chooses it.
func (j Jobs) Domain(index int32) string {
	if j.At == nil || int(index) >= len(j.At.Jobs) {
		return ""
	}
	return j.At.Jobs[index].Domain
}

// IsFor reports whether the place of a Job was chosen for its present attempt, of the Job alone.
func (j Jobs) IsFor(index, restarts int32) bool {
	return j.At != nil && int(index) < len(j.At.Jobs) && j.At.Jobs[index].Restarts == restarts
}

// ByScheduler reports whether the scheduler chooses the domain of a Job.
func (j Jobs) ByScheduler(index int32) bool { return j.At != nil && j.Domain(index) == "" }

// Apply puts the pods of a Job where they belong. The template shares memory with those of other Jobs.
func (j Jobs) Apply(template *corev1.PodTemplateSpec, index int32) {
	if j.At != nil {
		template.Labels[jobsetv1alpha2.PriorityKey] = helper.PriorityLabel(j.At.Priority)
	}
	if j.Topology == "" || template.Labels[jobsetv1alpha2.PriorityKey] == "" {
		return
	}
	if domain := j.Domain(index); domain != "" {
		template.Spec.NodeSelector = hostplan.Merged(template.Spec.NodeSelector, map[string]string{j.Topology: domain})
	}
	template.Spec.Affinity = j.affinity(template, j.ByScheduler(index))
}

// affinity returns the affinity of the template with more terms: pods run without those of the same priority of other
// sets. Those of a Job whose domain the scheduler chooses run with those of their Job, and without those of all other
// Jobs.
func (j Jobs) affinity(template *corev1.PodTemplateSpec, byScheduler bool) *corev1.Affinity {
	affinity := template.Spec.Affinity.DeepCopy()
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	term := func(expressions ...metav1.LabelSelectorRequirement) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchExpressions: expressions}, TopologyKey: j.Topology, NamespaceSelector: &metav1.LabelSelector{},
		}
	}
	with := func(operator metav1.LabelSelectorOperator, key string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{template.Labels[key]}}
	}
	others := jobsetv1alpha2.JobSetUIDKey
	if byScheduler {
		others = jobsetv1alpha2.JobKey
		if affinity.PodAffinity == nil {
			affinity.PodAffinity = &corev1.PodAffinity{}
		}
		required := &affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*required = append(*required, term(with(metav1.LabelSelectorOpIn, jobsetv1alpha2.JobKey)))
	}
	required := &affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*required = append(*required, term(
		metav1.LabelSelectorRequirement{Key: jobsetv1alpha2.JobKey, Operator: metav1.LabelSelectorOpExists},
		with(metav1.LabelSelectorOpNotIn, others), with(metav1.LabelSelectorOpIn, jobsetv1alpha2.PriorityKey),
	))
	return affinity
}
