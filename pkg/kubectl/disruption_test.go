// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/disruption"
)

func TestUncomputable(t *testing.T) {
	maxUnavailable := policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	minAvailable := policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1))}
	percentage := policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromString("50%"))}
	condition := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: status, Reason: reason, Message: "jobs.batch does not implement the scale subresource"}}
	}
	failed := condition(metav1.ConditionFalse, policyv1.SyncFailedReason)
	const why = "its condition DisruptionAllowed is False (SyncFailed): jobs.batch does not implement the scale subresource"
	for name, tc := range map[string]struct {
		spec       policyv1.PodDisruptionBudgetSpec
		conditions []metav1.Condition
		observed   int64
		want       string
	}{
		"sync failed":                       {maxUnavailable, failed, 1, why},
		"sync failed, never computed":       {maxUnavailable, failed, 0, why},
		"sync failed for another reason":    {minAvailable, failed, 1, why},
		"not computed":                      {maxUnavailable, nil, 0, "its status is not computed"},
		"a percentage, not computed":        {percentage, nil, 0, "its status is not computed"},
		"a change that is not computed":     {maxUnavailable, condition(metav1.ConditionTrue, policyv1.SufficientPodsReason), 0, "its status is not computed"},
		"a number, not computed yet":        {minAvailable, nil, 0, ""},
		"a number that allows none":         {minAvailable, condition(metav1.ConditionFalse, policyv1.InsufficientPodsReason), 1, ""},
		"maxUnavailable of pods of another": {maxUnavailable, condition(metav1.ConditionTrue, policyv1.SufficientPodsReason), 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: tc.spec}
			b.Status.Conditions, b.Status.ObservedGeneration = tc.conditions, tc.observed
			if got := disruption.Uncomputable(b); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSelector(t *testing.T) {
	pod := labels.Set{"app": "train"}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     bool
	}{
		"none":    {nil, false},
		"all":     {&metav1.LabelSelector{}, true},
		"match":   {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}, true},
		"other":   {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, false},
		"invalid": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}, false},
	} {
		b := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: tc.selector}}
		if got := disruption.Selector(b).Matches(pod); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
