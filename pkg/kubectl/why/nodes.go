// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// asksForNodes tells whether the pod may run on some nodes only, by their labels or names.
func asksForNodes(pod *corev1.Pod) bool {
	return len(pod.Spec.NodeSelector) > 0 || requiredTerms(pod) != nil
}

func requiredTerms(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// fitsNode tells whether a node has what the pod asks for in its node selector and its required node affinity.
func fitsNode(pod *corev1.Pod, node *corev1.Node) bool {
	if !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels)) {
		return false
	}
	terms := requiredTerms(pod)
	return terms == nil || slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		// A term that asks for nothing matches nothing.
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			return false
		}
		fits := func(requirements []corev1.NodeSelectorRequirement, values labels.Set) bool {
			return !slices.ContainsFunc(requirements, func(r corev1.NodeSelectorRequirement) bool { return !meets(r, values) })
		}
		return fits(term.MatchExpressions, node.Labels) && fits(term.MatchFields, labels.Set{"metadata.name": node.Name})
	})
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

func meets(r corev1.NodeSelectorRequirement, values labels.Set) bool {
	requirement, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
	return err == nil && requirement.Matches(values)
}

// tolerated tells whether a pod may run on a node in spite of the taint.
func tolerated(pod *corev1.Pod, taint *corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		switch {
		case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
			return false
		case t.Operator == corev1.TolerationOpExists:
			return true
		case t.Key == "":
			return false
		}
		return t.Value == taint.Value
	})
}

func taintText(t *corev1.Taint) string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return strconv.Quote(text + ":" + string(t.Effect))
}
