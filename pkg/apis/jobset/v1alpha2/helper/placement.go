// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

const kueuePrefix = "kueue.x-k8s.io/"

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
// that is supported unless the feature ExclusivePlacement is on.
func PlacementIgnored(set, template map[string]string) bool {
	asked := Placement(set, template)
	_, selector := asked[jobsetv1alpha2.NodeSelectorStrategyKey]
	return asked[jobsetv1alpha2.ExclusiveKey] != "" && !selector
}

// ExclusiveTopology returns the label of nodes by whose value each Job of a replicatedJob gets a domain of its own. It is empty if the
// replicatedJob does not ask for that, if an administrator sets nodes aside (the node-selector strategy), or if Kueue assigns the topology.
func ExclusiveTopology(js *jobsetv1alpha2.JobSet, rj *jobsetv1alpha2.ReplicatedJob) string {
	asked := Placement(js.Annotations, rj.Template.Annotations)
	if _, selector := asked[jobsetv1alpha2.NodeSelectorStrategyKey]; selector || placedByKueue(&rj.Template.Spec.Template) {
		return ""
	}
	return asked[jobsetv1alpha2.ExclusiveKey]
}

// placedByKueue returns whether pods ask Kueue for a topology, or have one from it.
func placedByKueue(template *corev1.PodTemplateSpec) bool {
	for key := range template.Annotations {
		if strings.HasPrefix(key, kueuePrefix+"podset-") && strings.HasSuffix(key, "-topology") {
			return true
		}
	}
	return slices.ContainsFunc(template.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool {
		return gate.Name == kueuePrefix+
			"topology"
	})
}

// PlacementOf returns where the Jobs of a replicatedJob run that are placed by the topology, by job index; nil if that is not decided.
func PlacementOf(status *jobsetv1alpha2.JobSetStatus, name, topology string) *jobsetv1alpha2.ReplicatedJobPlacement {
	if status.Placement == nil || status.Placement.Restarts != status.Restarts {
		return nil
	}
	for i := range status.Placement.ReplicatedJobs {
		if rj := &status.Placement.ReplicatedJobs[i]; rj.Name == name && rj.TopologyKey == topology {
			return rj
		}
	}
	return nil
}

// PriorityLabel returns the value of the label PriorityKey. The value of a label cannot begin with a minus sign: that
// of a negative priority begins with n.
func PriorityLabel(priority int32) string {
	if priority < 0 {
		return "n" + strconv.FormatInt(-int64(priority), 10)
	}
	return strconv.FormatInt(int64(priority), 10)
}

// MaxAvoidTime is the longest time for which pods keep off a node.
const MaxAvoidTime = jobset.MaxAvoidTime

// AvoidTime returns for how long the pods of a set keep off a node on which an attempt failed; 0 for not at all. The default
// counts for sets that say nothing, or nothing that has a meaning.
func AvoidTime(js *jobsetv1alpha2.JobSet, byDefault time.Duration) time.Duration {
	if value, set := js.Annotations[jobsetv1alpha2.AvoidFailedNodesKey]; set {
		if d, err := jobset.AvoidTime(value); err == nil {
			return d
		}
	}
	return byDefault
}

// AvoidedReason cuts why a node is avoided to the length that a status holds.
func AvoidedReason(reason string) string {
	return text.Truncate(text.Printable(reason), jobsetv1alpha2.MaxAvoidedReasonBytes)
}

// AvoidedInWords names nodes that pods keep off, until when, and why: a few of them, and the number of the others.
func AvoidedInWords(nodes []jobsetv1alpha2.AvoidedNode) string {
	const named = 3
	var out []string
	for i := range nodes[:min(len(nodes), named)] {
		node := &nodes[i]
		out = append(out, fmt.Sprintf("%s until %s (attempt %d: %s)", node.Name, node.Until.UTC().Format(time.RFC3339), node.Attempt,
			node.Reason))
	}
	text := strings.Join(out, ", ")
	if more := len(nodes) - named; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
