// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerpods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requireExclusive keeps pods with the same value of a label in one domain, and pods with another value out of it. If the pod already has
// both affinity and anti-affinity terms for such domains, with whatever selectors, it is left alone.
func (m *member) requireExclusive(topology, label string) {
	a := m.Spec.Affinity
	if a != nil && a.PodAffinity != nil && a.PodAntiAffinity != nil &&
		hasTerm(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, topology) &&
		hasTerm(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, topology) {
		return
	}
	if a == nil {
		a = &corev1.Affinity{}
		m.Spec.Affinity = a
	}
	if a.PodAffinity == nil {
		a.PodAffinity = &corev1.PodAffinity{}
	}
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	values := []string{m.Labels[label]}
	together, apart := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		&a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*together = append(*together, term(topology, metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpIn,
		Values: values}))
	*apart = append(*apart, term(topology,
		metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpExists},
		metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpNotIn, Values: values}))
}

func hasTerm(terms []corev1.PodAffinityTerm, topology string) bool {
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return t.TopologyKey == topology })
}

func term(topology string, requirements ...metav1.LabelSelectorRequirement) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: topology, LabelSelector: &metav1.LabelSelector{MatchExpressions: requirements}}
}
