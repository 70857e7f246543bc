// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// notes returns what the set asks for and does not get. Only the controller of this project writes attempts: what others do is
// not known.
func notes(js *jobsetv1alpha2.JobSet) []string {
	if js == nil || len(js.Status.Attempts) == 0 || js.Status.Placement != nil ||
		meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.PlacementPending) != nil {
		return nil
	}
	if !hasRun(js) || ptr.Deref(js.Spec.Suspend, false) { // no trace of the gate
		return nil
	}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if !helper.PlacementIgnored(js.Annotations, rj.Template.Annotations) || helper.ExclusiveTopology(js, rj) == "" {
			continue
		}
		return []string{fmt.Sprintf("exclusive placement (annotation %s) is not in effect for jobs of this set: they were created while the "+
			"feature gate ExclusivePlacement "+
			"of jobset-controller was off. If it is on now, a restart of the set places them; otherwise start both programs with "+
			"--feature-gates=ExclusivePlacement=true, or use the node-selector strategy (annotation %s)",
			jobsetv1alpha2.ExclusiveKey, jobsetv1alpha2.NodeSelectorStrategyKey)}
	}
	return nil
}

// endpointsByCluster returns why jobset-controller does not write the addresses of the Service although the set asks it to.
func endpointsByCluster(js *jobsetv1alpha2.JobSet) []string {
	if js == nil {
		return nil
	}
	c := meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.ServiceEndpointsByCluster)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return []string{"the controllers of the cluster, not jobset-controller, write the addresses of the Service: " + oneLine(c.Message)}
}

// hasRun returns whether Jobs of the set run or have ended.
func hasRun(js *jobsetv1alpha2.JobSet) bool {
	return slices.ContainsFunc(js.Status.ReplicatedJobsStatus, func(s jobsetv1alpha2.ReplicatedJobStatus) bool {
		return s.Active+s.Ready+s.Succeeded+s.Failed > 0
	})
}
