// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
)

// addPlacement adds the terms of the policy to the affinity of a template: its pods go where those of their slice are,
// and not where those of other slices are.
func addPlacement(pod *corev1.PodTemplateSpec, policy *disaggregatedsetv1.PlacementPolicy, set string, slice int32) {
	if policy == nil || policy.Type == "" || policy.Type == disaggregatedsetv1.PlacementNone {
		return
	}
	index := strconv.Itoa(int(slice))
	mine := requirement(disaggregatedsetv1.SetNameLabelKey, metav1.LabelSelectorOpIn, set)
	labeled := requirement(disaggregatedsetv1.SliceLabelKey, metav1.LabelSelectorOpExists)
	others := []metav1.LabelSelectorRequirement{mine}
	if slice == 0 { // children of early versions, without the label, are of slice 0
		others = append(others, labeled)
	}
	others = append(others, requirement(disaggregatedsetv1.SliceLabelKey, metav1.LabelSelectorOpNotIn, index))
	apart := []corev1.PodAffinityTerm{term(policy.Topology, others...)}
	if policy.Type == disaggregatedsetv1.PlacementExclusiveTopology {
		apart = append(apart, term(policy.Topology, requirement(disaggregatedsetv1.SetNameLabelKey, metav1.LabelSelectorOpExists),
			requirement(disaggregatedsetv1.SetNameLabelKey, metav1.LabelSelectorOpNotIn, set), labeled))
	}

	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	affinity := pod.Spec.Affinity
	if affinity.PodAffinity == nil {
		affinity.PodAffinity = &corev1.PodAffinity{}
	}
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	together, away := &affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		&affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*together = append(*together, term(policy.Topology, mine, requirement(disaggregatedsetv1.SliceLabelKey, metav1.LabelSelectorOpIn, index)))
	*away = append(*away, apart...)
}

func term(topology string, requirements ...metav1.LabelSelectorRequirement) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: topology, LabelSelector: &metav1.LabelSelector{MatchExpressions: requirements}}
}

func requirement(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}
