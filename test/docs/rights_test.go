// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// TestFeaturesBringTheirRights compares what jobset-controller may write by default with what components add: what only a feature needs that
// is off by default must come with its component, and not with the base as well.
func TestFeaturesBringTheirRights(t *testing.T) {
	base, added := map[string]sets.Set[string]{}, map[string]sets.Set[string]{}
	for key, verbs := range permissions(t, "jobset-controller-manager") {
		resource, place, _ := strings.Cut(key, " | ")
		written := verbs.Intersection(writes)
		if strings.Contains(place, "component ") {
			added[resource] = written.Union(added[resource])
		} else if place == "cluster" {
			base[resource] = written.Union(base[resource])
		}
	}
	for resource, verbs := range added {
		if verbs.Len() > 0 && verbs.Difference(base[resource]).Len() == 0 {
			t.Errorf("a component permits to %v %s, which the base permits, too", sets.List(verbs), resource)
		}
	}
	for resource, component := range map[string]string{
		"podgroups.scheduling.k8s.io": "pod-groups",
		"workloads.scheduling.k8s.io": "pod-groups", "leaderworkersets.leaderworkerset.x-k8s.io": "disaggregatedset",
	} {
		if base[resource].Len() > 0 || added[resource].Len() == 0 {
			t.Errorf("the base permits to %v %s, want only the component %s to do so", sets.List(base[resource]), resource, component)
		}
	}
}
