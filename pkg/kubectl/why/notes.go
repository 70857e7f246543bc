// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// notes returns what the set asks for and does not get. Only the controller of this project writes attempts: what others do is
// not known.
func notes(js *jobsetv1alpha2.JobSet) []string {
	if js == nil || len(js.Status.Attempts) == 0 {
		return nil
	}
	for i := range js.Spec.ReplicatedJobs {
		if ignoresTopology(js.Annotations, js.Spec.ReplicatedJobs[i].Template.Annotations) {
			return []string{"exclusive placement (annotation " + jobsetv1alpha2.ExclusiveKey +
				") is not implemented yet and is ignored; use the node-selector strategy (annotation " + jobsetv1alpha2.NodeSelectorStrategyKey + ")"}
		}
	}
	return nil
}

// ignoresTopology reports whether a replicatedJob asks for exclusive placement without the node-selector strategy. Its
// annotations override those of the set, each key on its own.
func ignoresTopology(set, template map[string]string) bool {
	var topology string
	var selector bool
	for _, level := range []map[string]string{set, template} {
		if value, found := level[jobsetv1alpha2.ExclusiveKey]; found {
			topology = value
			_, chosen := level[jobsetv1alpha2.NodeSelectorStrategyKey]
			selector = selector || chosen
		}
	}
	return topology != "" && !selector
}
