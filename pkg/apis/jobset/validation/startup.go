// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

var (
	startupOrders      = []jobset.StartupPolicyOptions{jobset.AnyOrder, jobset.InOrder}
	dependencyStatuses = []jobset.DependsOnStatus{jobset.DependencyReady, jobset.DependencyComplete}
)

// validateStartup checks both ways to order the start of the replicatedJobs, and that only one is used.
func validateStartup(spec *jobset.JobSetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	inOrder := false
	if policy := spec.StartupPolicy; policy != nil {
		inOrder = policy.StartupPolicyOrder == jobset.InOrder
		errs = append(errs, enum(path.Child("startupPolicy", "startupPolicyOrder"), policy.StartupPolicyOrder, startupOrders)...)
	}
	earlier := map[string]struct{}{}
	dependent := false
	for i := range spec.ReplicatedJobs {
		rj, p := &spec.ReplicatedJobs[i], path.Child("replicatedJobs").Index(i).Child("dependsOn")
		dependent = dependent || rj.DependsOn != nil
		if i == 0 && rj.DependsOn != nil {
			errs = append(errs, field.Forbidden(p, "must not be set on the first replicatedJob, even empty: a replicatedJob can depend only on "+
				"earlier ones"))
		}
		errs = append(errs, validateDependsOn(rj, earlier, p)...)
		earlier[rj.Name] = struct{}{}
	}
	if inOrder && dependent {
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			"StartupPolicy and DependsOn APIs are mutually exclusive: set startupPolicyOrder to AnyOrder, or remove dependsOn"))
	}
	return errs
}

// validateDependsOn checks what one replicatedJob waits for. Only earlier ones can be waited for, so that there are no
// cycles.
func validateDependsOn(rj *jobset.ReplicatedJob, earlier map[string]struct{}, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]struct{}{}
	for j, dependency := range rj.DependsOn {
		p := path.Index(j)
		if _, dup := seen[dependency.Name]; dup {
			errs = append(errs, podtemplate.Duplicate(p, dependency.Name))
		}
		seen[dependency.Name] = struct{}{}
		errs = append(errs, enum(p.Child("status"), dependency.Status, dependencyStatuses)...)
		if err := dependencyName(rj.Name, dependency.Name, earlier, p.Child("name")); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func dependencyName(self, name string, earlier map[string]struct{}, path *field.Path) *field.Error {
	if name == "" {
		return field.Required(path, "must be the name of an earlier replicatedJob")
	}
	if _, ok := earlier[name]; ok {
		return nil
	}
	if name == self {
		return field.Invalid(path, name, "must not be the replicatedJob itself, which would never start: set it to an earlier one")
	}
	return field.Invalid(path, name, fmt.Sprintf("must be the name of a replicatedJob that is listed before %q", self))
}
