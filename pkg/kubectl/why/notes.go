// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"k8s.io/apimachinery/pkg/api/meta"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// notes returns what the set asks for and does not get. Only the controller of this project writes attempts: what others do is
// not known.
func notes(js *jobsetv1alpha2.JobSet) []string {
	if js == nil || len(js.Status.Attempts) == 0 || js.Status.Placement != nil || meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.PlacementPending) != nil {
		return nil
	}
	for i := range js.Spec.ReplicatedJobs {
		if helper.PlacementIgnored(js.Annotations, js.Spec.ReplicatedJobs[i].Template.Annotations) {
			return []string{"exclusive placement (annotation " + jobsetv1alpha2.ExclusiveKey +
				") is ignored: it is supported only with the node-selector strategy (annotation " + jobsetv1alpha2.NodeSelectorStrategyKey + ")"}
		}
	}
	return nil
}
