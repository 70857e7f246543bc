// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

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
