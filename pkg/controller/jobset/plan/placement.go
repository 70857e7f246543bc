// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// placement returns the annotations that ask for exclusive placement: those of the set, and over them those of the
// replicatedJob, each key on its own. A level without a topology has no say.
func placement(js *jobsetv1alpha2.JobSet, rj *jobsetv1alpha2.ReplicatedJob) map[string]string {
	var out map[string]string
	for _, level := range []map[string]string{js.Annotations, rj.Template.Annotations} {
		topology, found := level[jobsetv1alpha2.ExclusiveKey]
		if !found {
			continue
		}
		out = merged(out, map[string]string{jobsetv1alpha2.ExclusiveKey: topology})
		if strategy, found := level[jobsetv1alpha2.NodeSelectorStrategyKey]; found {
			out[jobsetv1alpha2.NodeSelectorStrategyKey] = strategy
		}
	}
	return out
}
