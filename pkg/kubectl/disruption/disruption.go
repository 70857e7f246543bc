// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disruption finds PodDisruptionBudgets that block drains because no number of disruptions can be computed for them.
//
// The disruption controller computes maxUnavailable and percentages from the number of pods that there should be, which
// it takes from the scale of their owners. Jobs have no scale. The controller then allows no disruption at all, and
// says so in the condition DisruptionAllowed. StatefulSets, and with them the pods of LeaderWorkerSets, have a scale.
package disruption

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NeedsScale returns whether the owners of the pods need a scale for the number of disruptions of the budget.
func NeedsScale(b *policyv1.PodDisruptionBudget) bool {
	return b.Spec.MaxUnavailable != nil || b.Spec.MinAvailable != nil && b.Spec.MinAvailable.Type == intstr.String
}

// Uncomputable returns why the budget allows no disruption of pods of Jobs; "" if it may allow some, or if its numbers are the reason.
func Uncomputable(b *policyv1.PodDisruptionBudget) string {
	c := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	switch {
	case c != nil && c.Status == metav1.ConditionFalse && c.Reason == policyv1.SyncFailedReason:
		return fmt.Sprintf("its condition %s is False (%s): %s", c.Type, c.Reason, c.Message)
	case NeedsScale(b) && (c == nil || b.Status.ObservedGeneration < b.Generation):
		return "its status is not computed"
	}
	return ""
}

// Selector returns the selector of the pods of a budget. One without a selector, or with an invalid one, selects none.
func Selector(b *policyv1.PodDisruptionBudget) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}
