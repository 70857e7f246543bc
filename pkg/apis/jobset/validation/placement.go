// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

// validatePlacement checks that the entries are about different replicatedJobs, and that counts are not negative. The
// controller is trusted with what they mean.
func validatePlacement(at *jobset.Placement, path *field.Path) field.ErrorList {
	if at == nil {
		return nil
	}
	errs := generic.Count(at.Restarts, path.Child("restarts"))
	seen := map[string]struct{}{}
	for i := range at.ReplicatedJobs {
		entry, p := &at.ReplicatedJobs[i], path.Child("replicatedJobs").Index(i)
		if entry.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), "must be the name of the replicatedJob that is placed"))
		}
		if _, dup := seen[entry.Name]; dup {
			errs = append(errs, podtemplate.Duplicate(p, entry.Name))
		}
		seen[entry.Name] = struct{}{}
		if entry.TopologyKey == "" {
			errs = append(errs, field.Required(p.Child("topologyKey"), "must be a label of nodes"))
		}
		for index := range entry.Jobs {
			errs = append(errs, validateJobPlacement(&entry.Jobs[index], p.Child("jobs").Index(index))...)
		}
	}
	return errs
}

// maxLeft is how many of the domains that a Job has left are kept.
const maxLeft = 8

func validateJobPlacement(at *jobset.JobPlacement, path *field.Path) field.ErrorList {
	errs := generic.Count(at.Nodes, path.Child("nodes"))
	errs = append(errs, generic.Count(at.Restarts, path.Child("restarts"))...)
	if at.Moves != nil && len(at.Moves.Left) > maxLeft {
		errs = append(errs, field.TooMany(path.Child("moves", "left"), len(at.Moves.Left), maxLeft))
	}
	return errs
}

// validateAvoidTime checks for how long pods keep off nodes on which an attempt failed.
func validateAvoidTime(js *jobset.JobSet) field.ErrorList {
	value, set := js.Annotations[jobset.AvoidFailedNodesKey]
	if !set {
		return nil
	}
	if _, err := jobset.AvoidTime(value); err != nil {
		path := field.NewPath("metadata", "annotations").Key(jobset.AvoidFailedNodesKey)
		return field.ErrorList{field.Invalid(path, value, err.Error())}
	}
	return nil
}

// validateAvoidedNodes checks the nodes that the pods of an attempt keep off.
func validateAvoidedNodes(nodes []jobset.AvoidedNode, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]struct{}{}
	for i := range nodes {
		node, p := &nodes[i], path.Index(i)
		if node.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), "must be the name of the node"))
		}
		if _, dup := seen[node.Name]; dup {
			errs = append(errs, podtemplate.Duplicate(p, node.Name))
		}
		seen[node.Name] = struct{}{}
		if node.Attempt < 1 {
			errs = append(errs, field.Invalid(p.Child("attempt"), node.Attempt, "must be 1 or more"))
		}
		if node.Until.IsZero() {
			errs = append(errs, field.Required(p.Child("until"), "must be the time when pods may run on the node again"))
		}
		errs = append(errs, generic.BytesWithin(node.Name, maxAttemptNameLength, p.Child("name"))...)
		errs = append(errs, generic.BytesWithin(node.Reason, jobset.MaxAvoidedReasonBytes, p.Child("reason"))...)
	}
	return errs
}
