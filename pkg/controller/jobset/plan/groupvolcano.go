// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/podgroups"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
)

// volcanoGroupKey is the annotation by which Volcano knows the PodGroup of a pod.
const volcanoGroupKey = "scheduling.k8s.io/group-name"

// volcano returns the PodGroup of Volcano. A group that is no gang has one member that must be scheduled.
func (g groupObjects) volcano(group *podgroups.Group) *unstructured.Unstructured {
	out := g.object(kindPodGroup, group.Name, map[string]any{})
	asked := &g.asked[group.Entry]
	members := int64(1)
	if gang := asked.Policy.Gang; gang != nil {
		members = group.Pods
		if gang.MinCount != nil {
			members = int64(*gang.MinCount)
		}
	}
	gangplan.SetVolcano(out, g.js, members, gangplan.MinResources(g.podsOf(group, members)...))
	if class := g.priorityClass(group); class != "" {
		_ = unstructured.SetNestedField(out.Object, class, "spec", "priorityClassName") // the spec is a map
	}
	return out
}

// podsOf returns as many pods of a group as must be scheduled, those of the first replicatedJobs first.
func (g groupObjects) podsOf(group *podgroups.Group, members int64) (out []gangplan.Pods) {
	for _, target := range g.set.Entries[group.Entry].Targets {
		rj := replicatedJobNamed(g.js, target)
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

// unknownToVolcano returns what a set asks of its groups that Volcano's have not; empty if there is nothing.
func (g groupObjects) unknownToVolcano() string {
	for i := range g.asked {
		switch asked := &g.asked[i]; {
		case asked.Constraints != nil && len(asked.Constraints.Topology) > 0:
			return "schedulingConstraints"
		case asked.Disruption != nil:
			return "disruptionMode"
		case len(asked.Claims) > 0:
			return "resourceClaims"
		}
	}
	return ""
}

const (
	noVolcano = "the cluster serves no PodGroups of scheduling.volcano.sh/v1beta1; install Volcano, or start jobset-controller without " +
		"--gang-scheduling-provider=volcano; or suspend the JobSet and remove spec.scheduling"
	volcanoLacks = " cannot be asked of the PodGroups of Volcano; suspend the JobSet and remove it from spec.scheduling, or start jobset-controller without " +
		"--gang-scheduling-provider=volcano"
)

// refuseVolcano refuses what Volcano would ignore.
func (g groupObjects) refuseVolcano() *Refusal {
	if g.api != GroupsVolcano {
		return nil
	}
	if field := g.unknownToVolcano(); field != "" {
		return &Refusal{Reason: jobsetv1alpha2.ReasonNotSupported, Message: field + volcanoLacks}
	}
	return nil
}
