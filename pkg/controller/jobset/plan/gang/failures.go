// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// noGroupsAPI is for clusters without an API for groups.
const noGroupsAPI = "the cluster serves no Workloads and PodGroups of scheduling.k8s.io (v1beta1, v1alpha3 or v1alpha2); turn on the " +
	"feature gate GenericWorkload of kube-apiserver, kube-scheduler and kube-controller-manager, and " +
	"--runtime-config=scheduling.k8s.io/v1beta1=true of kube-apiserver (in Kubernetes 1.36 also the feature gate GangScheduling, and " +
	"v1alpha2 in place of v1beta1); or suspend the JobSet and remove spec.scheduling"

// unknownAfter is when a set is looked at again whose groups are not known.
const unknownAfter = 10 * time.Second

// refusal returns why no group can be made.
func (g *Observed) refusal() *hostplan.Refusal {
	switch {
	case g.Absent && g.Provider != "":
		return &hostplan.Refusal{Reason: jobsetv1alpha2.ReasonNotSupported, Message: notInstalled(g.Provider)}
	case g.Absent:
		return &hostplan.Refusal{Reason: jobsetv1alpha2.ReasonNotSupported, Message: noGroupsAPI}
	case g.Problem != "":
		return &hostplan.Refusal{Reason: jobsetv1alpha2.ReasonFailedCreate, MayPass: true,
			Message: "the groups that exist cannot be read: " + g.Problem}
	}
	return nil
}

// refuse notes why a group cannot be made. Of several reasons it keeps the first one in alphabetical order, so that the
// condition does not depend on the order of objects.
func (c *Changes) refuse(refusal *hostplan.Refusal) {
	if refusal != nil && (c.Refusal == nil || refusal.Message < c.Refusal.Message) {
		c.Refusal = refusal
	}
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

func notKept(field string, object *unstructured.Unstructured) *hostplan.Refusal {
	return &hostplan.Refusal{Reason: jobsetv1alpha2.ReasonNotSupported, Message: fmt.Sprintf(
		"the cluster does not keep %s of the %s %s; turn on its feature gate %s, then suspend and resume the JobSet",
		field, object.GetKind(), object.GetName(), gatesOfFields[field])}
}
