// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// noGroupsAPI is for clusters without an API for groups.
const noGroupsAPI = "the cluster serves no Workloads and PodGroups of scheduling.k8s.io (v1beta1, v1alpha3 or v1alpha2); turn on the " +
	"feature gates GenericWorkload and GangScheduling of kube-apiserver, kube-scheduler and kube-controller-manager, and in " +
	"Kubernetes 1.36 also --runtime-config=scheduling.k8s.io/v1alpha2=true of kube-apiserver; or suspend the JobSet and remove spec.scheduling"

// groupsUnknownAfter is when a set is looked at again whose groups are not known.
const groupsUnknownAfter = 10 * time.Second

// refusal returns why no group can be made.
func (g *Grouped) refusal(jobsWait bool) *Refusal {
	switch {
	case !jobsWait:
	case g.Absent && g.Provider != "":
		return &Refusal{Reason: jobsetv1alpha2.ReasonNotSupported, Message: notInstalled(g.Provider)}
	case g.Absent:
		return &Refusal{Reason: jobsetv1alpha2.ReasonNotSupported, Message: noGroupsAPI}
	case g.Problem != "":
		return &Refusal{Reason: jobsetv1alpha2.ReasonFailedCreate, Message: "the groups that exist cannot be read: " + g.Problem, MayPass: true}
	}
	return nil
}

// refuse notes why a group cannot be made. Of several reasons it keeps the first one in alphabetical order, so that the
// condition does not depend on the order of objects.
func (c *GroupChanges) refuse(refusal *Refusal) {
	if refusal != nil && (c.Refusal == nil || refusal.Message < c.Refusal.Message) {
		c.Refusal = refusal
	}
}

// awaitGroups returns when a set is looked at again whose groups are not known; 0 if something else leads to that.
func (c GroupChanges) awaitGroups(o Observed) time.Duration {
	if !c.Waiting || o.Grouped.API != "" || o.Grouped.Absent {
		return 0
	}
	return groupsUnknownAfter
}

// add adds to results why no group was tried.
func (c GroupChanges) add(r Results) Results {
	if c.Refusal != nil && len(r.Refusals) == 0 {
		r.Refused, r.Refusals = "the groups of the pods", []Refusal{*c.Refusal}
	}
	return r
}

// gatesOfFields are the feature gates of the cluster without which it drops fields of groups.
var gatesOfFields = map[string]string{
	"schedulingConstraints": "TopologyAwareWorkloadScheduling", "resourceClaims": "DRAWorkloadResourceClaims",
	"disruptionMode": "WorkloadAwarePreemption",
}

// dropped returns a field of a PodGroup, or of a template, that the API did not keep; empty if it kept all. A group is
// not recreated for that: the result would be the same.
func dropped(want, have map[string]any) string {
	for _, field := range slices.Sorted(maps.Keys(gatesOfFields)) {
		if want[field] != nil && have[field] == nil {
			return field
		}
	}
	return ""
}

func notKept(field string, object *unstructured.Unstructured) *Refusal {
	return &Refusal{Reason: jobsetv1alpha2.ReasonNotSupported, Message: fmt.Sprintf(
		"the cluster does not keep %s of the %s %s; turn on its feature gate %s, then suspend and resume the JobSet",
		field, object.GetKind(), object.GetName(), gatesOfFields[field])}
}
