// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func admittedTo(flavors map[corev1.ResourceName]string, change ...func(*Workload)) *Workload {
	return held(admitted, append([]func(*Workload){func(w *Workload) {
		w.Status.Admission = &Admission{ClusterQueue: "all", PodSetAssignments: []PodSetAssignment{{Name: "main", Flavors: flavors}}}
	}}, change...)...)
}

func TestDirectives(t *testing.T) {
	spot := corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists}
	flavors := map[string]*ResourceFlavor{
		"spot":  {Spec: ResourceFlavorSpec{NodeLabels: map[string]string{"type": "spot"}, Tolerations: []corev1.Toleration{spot}}},
		"fast":  {Spec: ResourceFlavorSpec{NodeLabels: map[string]string{"gpu": "fast"}, Tolerations: []corev1.Toleration{spot}}},
		"fixed": {Spec: ResourceFlavorSpec{NodeLabels: map[string]string{"type": "fixed"}}},
	}
	w := admittedTo(map[corev1.ResourceName]string{"cpu": "spot", "memory": "spot", "nvidia.com/gpu": "fast"}, func(w *Workload) {
		w.Status.Admission.PodSetAssignments[0].TopologyAssignment = map[string]any{"levels": []any{"rack"}}
		w.Status.AdmissionChecks = []AdmissionCheckState{{Name: "nodes", PodSetUpdates: []PodSetUpdate{
			{Name: "main", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}, NodeSelector: map[string]string{"node": "new"}},
			{Name: "other", Labels: map[string]string{"o": "1"}},
		}}}
	})
	if diff := cmp.Diff([]string{"fast", "spot"}, FlavorsOf(w)); diff != "" {
		t.Errorf("flavors (-want +got):\n%s", diff)
	}
	got, err := DirectivesOf(w, flavors)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Directives{"main": {
		Labels:       map[string]string{PodSetKey: "main", LocalQueueKey: "team", ClusterQueueKey: "all", "l": "1"},
		Annotations:  map[string]string{WorkloadKey: w.Name, "a": "1"},
		NodeSelector: map[string]string{"type": "spot", "gpu": "fast", "node": "new"}, Tolerations: []corev1.Toleration{spot},
		SchedulingGates: []string{TopologyGate},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("directives (-want +got):\n%s", diff)
	}

	template := &corev1.PodTemplateSpec{}
	template.Labels = map[string]string{"own": "label"}
	template.Spec.NodeSelector = map[string]string{"type": "spot"}
	template.Spec.Tolerations = []corev1.Toleration{spot}
	for range 2 { // what is there already is not added again
		if err := got["main"].AddTo(template); err != nil {
			t.Fatal(err)
		}
	}
	if len(template.Labels) != 5 || len(template.Spec.NodeSelector) != 3 || len(template.Spec.Tolerations) != 1 || len(template.Spec.SchedulingGates) != 1 {
		t.Errorf("template %+v", template)
	}

	other, err := DirectivesOf(admittedTo(map[corev1.ResourceName]string{"cpu": "fixed"}), flavors)
	if err != nil || KeyOf(other) == KeyOf(got) || KeyOf(got) == "" {
		t.Errorf("keys %q and %q, error %v", KeyOf(got), KeyOf(other), err)
	}
	for name, wrong := range map[string]struct {
		err  func() error
		want string
	}{
		"a flavor that is gone": {func() error {
			_, err := DirectivesOf(admittedTo(map[corev1.ResourceName]string{"cpu": "lost"}), flavors)
			return err
		}, "the ResourceFlavor lost, which the Workload " + w.Name + " was admitted to, does not exist"},
		"flavors that contradict": {func() error {
			_, err := DirectivesOf(admittedTo(map[corev1.ResourceName]string{"cpu": "fixed", "memory": "spot"}), flavors)
			return err
		}, `the ResourceFlavor spot: the node selector type must be "spot", but is "fixed" already`},
	} {
		if err := wrong.err(); err == nil || err.Error() != wrong.want {
			t.Errorf("%s: error %v, want %s", name, err, wrong.want)
		}
	}
	if err := other["main"].AddTo(template); err == nil {
		t.Error("a template for spot nodes became one for fixed nodes")
	}
}
