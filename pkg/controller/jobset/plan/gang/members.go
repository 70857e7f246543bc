// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/podgroups"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// withMembers returns the PodGroup of a scheduler with an own kind. A group that is no gang has one member that must be scheduled.
func (g groupObjects) withMembers(group *podgroups.Group) *unstructured.Unstructured {
	out := g.object(kindPodGroup, group.Name, map[string]any{})
	asked := &g.asked[group.Entry]
	members := int64(1)
	if gang := asked.Policy.Gang; gang != nil {
		members = group.Pods
		if gang.MinCount != nil {
			members = int64(*gang.MinCount)
		}
	}
	provider := g.api.Provider()
	provider.SetSpec(out, g.js, members, gangplan.MinResources(g.podsOf(group, members)...))
	if class := g.priorityClass(group); class != "" && provider == gangplan.Volcano {
		_ = unstructured.SetNestedField(out.Object, class, "spec", "priorityClassName") // the spec is a map
	}
	return out
}

// podsOf returns as many pods of a group as must be scheduled, those of the first replicatedJobs first.
func (g groupObjects) podsOf(group *podgroups.Group, members int64) (out []gangplan.Pods) {
	for _, target := range g.set.Entries[group.Entry].Targets {
		rj := helper.ReplicatedJob(g.js, target)
		if rj == nil {
			continue
		}
		number := podgroups.PodsAtOnce(&rj.Template.Spec)
		if group.Job < 0 {
			number *= int64(max(helper.Replicas(rj), 0))
		}
		number = min(number, members)
		members -= number
		out = append(out, gangplan.Pods{Template: &rj.Template.Spec.Template, Number: number})
	}
	return out
}

// unknown returns what is asked of a group that those of the scheduler have not; empty if there is nothing.
func (g groupObjects) unknown(group *podgroups.Group) string {
	if g.api.Provider() == "" {
		return ""
	}
	switch asked := &g.asked[group.Entry]; {
	case asked.Constraints != nil && len(asked.Constraints.Topology) > 0:
		return "schedulingConstraints"
	case asked.Disruption != nil:
		return "disruptionMode"
	case len(asked.Claims) > 0:
		return "resourceClaims"
	}
	return ""
}

// productOf names a scheduler in messages.
func productOf(p gangplan.Provider) (product, install string) {
	if p == gangplan.Coscheduling {
		return "the coscheduling plugin", "install a scheduler with the coscheduling plugin, and its PodGroups"
	}
	return "Volcano", "install Volcano"
}

// notInstalled is for clusters without the PodGroups of the scheduler.
func notInstalled(p gangplan.Provider) string {
	_, install := productOf(p)
	return fmt.Sprintf("the cluster serves no PodGroups of %s; %s, or start jobset-controller without --gang-scheduling-provider=%s; "+
		"or suspend the JobSet and remove spec.scheduling", p.Resource().GroupVersion(), install, p)
}

// refuseFields refuses what the scheduler would ignore; nil if there is nothing.
func (g groupObjects) refuseFields() *hostplan.Refusal {
	for i := range g.groups {
		field := g.unknown(&g.groups[i])
		if field == "" {
			continue
		}
		p := g.api.Provider()
		product, _ := productOf(p)
		return &hostplan.Refusal{Reason: jobsetv1alpha2.ReasonNotSupported,
			Message: fmt.Sprintf("%s cannot be asked of the PodGroups of %s; suspend the JobSet and "+
				"remove it from spec.scheduling, or start jobset-controller without --gang-scheduling-provider=%s", field, product, p)}
	}
	return nil
}
