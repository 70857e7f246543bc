// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

// validatePlacement checks that the entries are about different replicatedJobs, and that counts are not negative. The
// controller is trusted with what they mean.
func validatePlacement(at *jobset.Placement, path *field.Path) field.ErrorList {
	if at == nil {
		return nil
	}
	errs := validateCount(at.Restarts, path.Child("restarts"))
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
	errs := validateCount(at.Nodes, path.Child("nodes"))
	errs = append(errs, validateCount(at.Restarts, path.Child("restarts"))...)
	if at.Moves != nil && len(at.Moves.Left) > maxLeft {
		errs = append(errs, field.TooMany(path.Child("moves", "left"), len(at.Moves.Left), maxLeft))
	}
	return errs
}
