// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// repelling returns the term with which pods of the set repel those of a priority of other sets.
func repelling(priority string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{
		TopologyKey: rack, NamespaceSelector: &metav1.LabelSelector{}, LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "jobset.sigs.k8s.io/job-key", Operator: "Exists"},
			{Key: "jobset.sigs.k8s.io/jobset-uid", Operator: "NotIn", Values: []string{"uid-js"}},
			{Key: "jobset.sigs.k8s.io/priority", Operator: "In", Values: []string{priority}},
		}},
	}}
}

// TestPodsRepelOthers shows which pods carry their priority, and which of them keep those of other sets out of their domain.
func TestPodsRepelOthers(t *testing.T) {
	class := func(name string) func(*jobsetv1alpha2.JobSet) {
		return func(js *jobsetv1alpha2.JobSet) {
			js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.PriorityClassName = name
		}
	}
	type sets = []func(*jobsetv1alpha2.JobSet)
	for name, tc := range map[string]struct {
		change sets
		off    bool
		label  string
		repels []corev1.PodAffinityTerm
	}{
		"a Job with a domain":               {sets{byRack, placedAt(racks(0, -7, "a"))}, false, "n7", repelling("n7")},
		"a Job that is created suspended":   {sets{byRack, isSuspended, class("high")}, false, "10", repelling("10")},
		"one of the default priority":       {sets{byRack, isSuspended}, false, "5", repelling("5")},
		"one of an unknown priority":        {sets{byRack, isSuspended, class("unknown")}, false, "", nil},
		"a Job without exclusive placement": {sets{class("high")}, false, "10", nil},
		"one that names the priority itself": {sets{func(js *jobsetv1alpha2.JobSet) {
			js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Priority = ptr.To[int32](3)
		}}, false, "3", nil},
		"a Job whose nodes are set aside":      {sets{byRack, func(js *jobsetv1alpha2.JobSet) { js.Annotations[jobsetv1alpha2.NodeSelectorStrategyKey] = "" }}, false, "", nil},
		"without the feature":                  {sets{byRack, class("high")}, true, "", nil},
		"without the feature, but with domain": {sets{byRack, placedAt(racks(0, 1, "a"))}, true, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(sets{with("w", 1)}, tc.change...)...))
			if !tc.off {
				o.Gates.ExclusivePlacement, o.Priorities = true, map[string]int32{"": 5, "high": 10}
			}
			template := Decide(o).CreateJobs[0].Spec.Template
			diff(t, "label", tc.label, template.Labels["jobset.sigs.k8s.io/priority"])
			var want *corev1.Affinity
			if tc.repels != nil {
				want = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: tc.repels}}
			}
			diff(t, "affinity", want, template.Spec.Affinity)
		})
	}
}
