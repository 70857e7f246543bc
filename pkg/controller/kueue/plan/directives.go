// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Directives are what an admission adds to the pods of one pod set.
type Directives struct {
	Labels          map[string]string   `json:"labels,omitempty"`
	Annotations     map[string]string   `json:"annotations,omitempty"`
	NodeSelector    map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations     []corev1.Toleration `json:"tolerations,omitempty"`
	SchedulingGates []string            `json:"schedulingGates,omitempty"`
}

// FlavorsOf returns the names of the ResourceFlavors that an admission assigns, in order.
func FlavorsOf(w *Workload) []string {
	names := map[string]bool{}
	if w.Status.Admission != nil {
		for _, a := range w.Status.Admission.PodSetAssignments {
			for _, flavor := range a.Flavors {
				names[flavor] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// DirectivesOf returns what the admission of a Workload adds to its pods, by pod set. flavors are the flavors that FlavorsOf names.
func DirectivesOf(w *Workload, flavors map[string]*ResourceFlavor) (map[string]Directives, error) {
	if w.Status.Admission == nil {
		return nil, fmt.Errorf("the Workload %s has no admission", w.Name)
	}
	all := map[string]Directives{}
	for _, a := range w.Status.Admission.PodSetAssignments {
		d := Directives{
			Labels: map[string]string{
				PodSetKey: a.Name, LocalQueueKey: w.Spec.QueueName, ClusterQueueKey: w.Status.Admission.ClusterQueue,
			},
			Annotations: map[string]string{WorkloadKey: w.Name}, NodeSelector: map[string]string{},
		}
		names := slices.Compact(slices.Sorted(maps.Values(a.Flavors)))
		for _, name := range names {
			flavor := flavors[name]
			if flavor == nil {
				return nil, fmt.Errorf("the ResourceFlavor %s, which the Workload %s was admitted to, does not exist", name, w.Name)
			}
			if err := d.add(PodSetUpdate{NodeSelector: flavor.Spec.NodeLabels, Tolerations: flavor.Spec.Tolerations}); err != nil {
				return nil, fmt.Errorf("the ResourceFlavor %s: %w", name, err)
			}
		}
		for _, check := range w.Status.AdmissionChecks {
			for _, update := range check.PodSetUpdates {
				if update.Name != a.Name {
					continue
				}
				if err := d.add(update); err != nil {
					return nil, fmt.Errorf("the admission check %s: %w", check.Name, err)
				}
			}
		}
		if len(a.TopologyAssignment) > 0 {
			d.SchedulingGates = []string{TopologyGate}
		}
		all[a.Name] = d
	}
	return all, nil
}

func (d *Directives) add(update PodSetUpdate) error {
	for _, part := range []struct {
		what     string
		to, from map[string]string
	}{
		{"label", d.Labels, update.Labels}, {"annotation", d.Annotations, update.Annotations},
		{"node selector", d.NodeSelector, update.NodeSelector},
	} {
		if err := merge(part.what, part.to, part.from); err != nil {
			return err
		}
	}
	for _, t := range update.Tolerations {
		if !tolerates(d.Tolerations, t) {
			d.Tolerations = append(d.Tolerations, t)
		}
	}
	return nil
}

// merge adds entries to a map. One that is there with another value contradicts.
func merge(what string, to, from map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if known, found := to[key]; found && known != from[key] {
			return fmt.Errorf("the %s %s must be %q, but is %q already", what, key, from[key], known)
		}
		to[key] = from[key]
	}
	return nil
}

// AddTo adds the directives to a template of pods, which is changed.
func (d Directives) AddTo(template *corev1.PodTemplateSpec) error {
	own := Directives{
		Labels: notNil(template.Labels), Annotations: notNil(template.Annotations),
		NodeSelector: notNil(template.Spec.NodeSelector), Tolerations: template.Spec.Tolerations,
	}
	update := PodSetUpdate{Labels: d.Labels, Annotations: d.Annotations, NodeSelector: d.NodeSelector, Tolerations: d.Tolerations}
	if err := own.add(update); err != nil {
		return err
	}
	template.Labels, template.Annotations, template.Spec.Tolerations = own.Labels, own.Annotations, own.Tolerations
	if len(own.NodeSelector) > 0 {
		template.Spec.NodeSelector = own.NodeSelector
	}
	for _, gate := range d.SchedulingGates {
		if !slices.ContainsFunc(template.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == gate }) {
			template.Spec.SchedulingGates = append(template.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
		}
	}
	return nil
}

func notNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// KeyOf returns a short text that differs for different directives. It is on the children that run with them.
func KeyOf(all map[string]Directives) string {
	type entry struct {
		PodSet string
		Directives
	}
	var entries []entry
	for name, d := range all {
		entries = append(entries, entry{name, d})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.PodSet, b.PodSet) })
	data, err := json.Marshal(entries)
	if err != nil {
		return "" // strings can always be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
