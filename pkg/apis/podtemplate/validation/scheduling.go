// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	requiredTerms  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"
)

func (c *checker) affinity(affinity *corev1.Affinity, path *field.Path) {
	if affinity == nil {
		return
	}
	c.nodeAffinity(affinity.NodeAffinity, path.Child("nodeAffinity"))
	if pod := affinity.PodAffinity; pod != nil {
		c.podTerms(pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution,
			path.Child("podAffinity"))
	}
	if pod := affinity.PodAntiAffinity; pod != nil {
		c.podTerms(pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution,
			path.Child("podAntiAffinity"))
	}
}

// nodeAffinity leaves the presence of a preference alone: an empty one is legal and matches every node.
func (c *checker) nodeAffinity(affinity *corev1.NodeAffinity, path *field.Path) {
	if affinity == nil {
		return
	}
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		terms := path.Child(requiredTerms, "nodeSelectorTerms")
		c.present(terms, required.NodeSelectorTerms != nil)
		for i := range required.NodeSelectorTerms {
			c.nodeTerm(&required.NodeSelectorTerms[i], terms.Index(i))
		}
	}
	for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		term, p := &affinity.PreferredDuringSchedulingIgnoredDuringExecution[i], path.Child(preferredTerms).Index(i)
		c.present(p.Child("weight"), term.Weight != 0)
		c.nodeTerm(&term.Preference, p.Child("preference"))
	}
}

func (c *checker) nodeTerm(term *corev1.NodeSelectorTerm, path *field.Path) {
	c.nodeRequirements(term.MatchExpressions, path.Child("matchExpressions"))
	c.nodeRequirements(term.MatchFields, path.Child("matchFields"))
}

func (c *checker) nodeRequirements(requirements []corev1.NodeSelectorRequirement, path *field.Path) {
	for i := range requirements {
		c.text(path.Index(i).Child("key"), requirements[i].Key)
		c.text(path.Index(i).Child("operator"), string(requirements[i].Operator))
	}
}

func (c *checker) podTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, path *field.Path) {
	for i := range required {
		c.podTerm(&required[i], path.Child(requiredTerms).Index(i))
	}
	for i := range preferred {
		p := path.Child(preferredTerms).Index(i)
		c.present(p.Child("weight"), preferred[i].Weight != 0)
		c.podTerm(&preferred[i].PodAffinityTerm, p.Child("podAffinityTerm"))
	}
}

func (c *checker) podTerm(term *corev1.PodAffinityTerm, path *field.Path) {
	c.text(path.Child("topologyKey"), term.TopologyKey)
	c.labelSelector(term.LabelSelector, path.Child("labelSelector"))
	c.labelSelector(term.NamespaceSelector, path.Child("namespaceSelector"))
}

func (c *checker) spreadConstraints(constraints []corev1.TopologySpreadConstraint, path *field.Path) {
	for i := range constraints {
		constraint, p := &constraints[i], path.Index(i)
		c.present(p.Child("maxSkew"), constraint.MaxSkew != 0)
		c.text(p.Child("topologyKey"), constraint.TopologyKey)
		c.text(p.Child("whenUnsatisfiable"), string(constraint.WhenUnsatisfiable))
		c.labelSelector(constraint.LabelSelector, p.Child("labelSelector"))
	}
	unique(c, path, constraints, func(t *corev1.TopologySpreadConstraint) string {
		return t.TopologyKey + "/" + string(t.WhenUnsatisfiable)
	})
}
