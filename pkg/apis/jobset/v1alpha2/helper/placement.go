// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Placement returns the annotations that ask for exclusive placement of a replicatedJob: those of the set, and over them those
// of the template of the replicatedJob, each key on its own. A level without a topology has no say. It returns nil if neither has one.
func Placement(set, template map[string]string) map[string]string {
	var out map[string]string
	for _, level := range []map[string]string{set, template} {
		topology, found := level[jobsetv1alpha2.ExclusiveKey]
		if !found {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[jobsetv1alpha2.ExclusiveKey] = topology
		if strategy, found := level[jobsetv1alpha2.NodeSelectorStrategyKey]; found {
			out[jobsetv1alpha2.NodeSelectorStrategyKey] = strategy
		}
	}
	return out
}

// PlacementIgnored reports whether a replicatedJob asks for exclusive placement without the node-selector strategy, the only one
// that is supported.
func PlacementIgnored(set, template map[string]string) bool {
	asked := Placement(set, template)
	_, selector := asked[jobsetv1alpha2.NodeSelectorStrategyKey]
	return asked[jobsetv1alpha2.ExclusiveKey] != "" && !selector
}
