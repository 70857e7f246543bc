// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation checks JobSets. Its functions are pure: an object and options in, errors out.
//
// A new object must satisfy every rule. An update must satisfy the rules on what may change, and must not bring in an
// error of its own: an error that the stored object has too is tolerated, so that an object which was stored under
// other rules can still be suspended, labeled and finished.
package validation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

// ValidateJobSetCreate checks a new JobSet, after defaulting. Lists that are too long are reported alone.
func ValidateJobSetCreate(js *jobset.JobSet, opts gates.Gates) field.ErrorList {
	if errs := specSizes(&js.Spec).Grown(func() *generic.Sizes { return &generic.Sizes{} }); len(errs) > 0 {
		return errs
	}
	errs := apivalidation.ValidateObjectMeta(&js.ObjectMeta, true, setName, field.NewPath("metadata"))
	return append(errs, validateSpec(js, opts)...)
}

// ValidateJobSetUpdate checks a change of the spec. The caller has checked the change of the metadata. Lists that are too
// long, and longer than in the stored object, are reported alone.
func ValidateJobSetUpdate(next, prev *jobset.JobSet, opts gates.Gates) field.ErrorList {
	if errs := specSizes(&next.Spec).Grown(func() *generic.Sizes { return specSizes(&prev.Spec) }); len(errs) > 0 {
		return errs
	}
	errs := validateTransition(next, prev, opts)
	return append(errs, generic.Introduced(validateSpec(next, opts), validateSpec(prev, opts))...)
}

// ValidateJobSetStatusUpdate checks a change of the status.
func ValidateJobSetStatusUpdate(next, prev *jobset.JobSet, _ gates.Gates) field.ErrorList {
	return generic.Status(next, prev, statusSizes, validateStatus)
}

// validateSpec checks a spec on its own, with the names that the name of the JobSet leads to.
func validateSpec(js *jobset.JobSet, opts gates.Gates) field.ErrorList {
	path := field.NewPath("spec")
	spec := &js.Spec
	var errs field.ErrorList
	errs = append(errs, validateCheckpointStep(js)...)
	errs = append(errs, validateAvoidTime(js)...)
	errs = append(errs, validateMetadata(js)...)
	errs = append(errs, validateServiceEndpoints(js)...)
	errs = append(errs, validateReplicatedJobs(js, path.Child("replicatedJobs"))...)
	errs = append(errs, validateStartup(spec, path)...)
	errs = append(errs, validateNetwork(spec.Network, path.Child("network"))...)
	errs = append(errs, generic.ValidateManagedBy(spec.ManagedBy, path.Child("managedBy"))...)
	errs = append(errs, validateSuccessPolicy(spec, path.Child("successPolicy"))...)
	errs = append(errs, validateFailurePolicy(spec, opts, path)...)
	errs = append(errs, validateInPlaceRestart(spec, opts, path)...)
	errs = append(errs, validateCoordinator(js, path.Child("coordinator"))...)
	errs = append(errs, validateVolumeClaimPolicies(js, path)...)
	errs = append(errs, validateScheduling(js, opts, path)...)
	errs = append(errs, validateActiveDeadline(spec.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds"))...)
	if ttl := spec.TTLSecondsAfterFinished; ttl != nil && *ttl < 0 {
		errs = append(errs, field.Invalid(path.Child("ttlSecondsAfterFinished"), *ttl, "must be 0 or more; leave it out to keep the set"))
	}
	return errs
}

// enum checks a value that must be set to one of a few.
func enum[T ~string](path *field.Path, value T, supported []T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "must be one of "+choices(supported))}
	}
	for _, s := range supported {
		if value == s {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}

func choices[T ~string](supported []T) string {
	texts := make([]string, len(supported))
	for i, s := range supported {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

// validateMetadata checks which keys Jobs and pods are to get.
func validateMetadata(js *jobset.JobSet) field.ErrorList {
	value, set := js.Annotations[jobset.MetadataKey]
	if !set || value == jobset.MetadataCompact {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(jobset.MetadataKey)
	return field.ErrorList{field.NotSupported(path, value, []string{jobset.MetadataCompact})}
}

// validateNetwork checks an explicit subdomain. The default, the name of the set, is covered by the names of its Jobs.
func validateNetwork(network *jobset.Network, path *field.Path) field.ErrorList {
	if network == nil || network.Subdomain == "" {
		return nil
	}
	return label(path.Child("subdomain"), network.Subdomain, ", because it is the name of a Service")
}

// validateServiceEndpoints checks who is to write the addresses of the headless Service.
func validateServiceEndpoints(js *jobset.JobSet) field.ErrorList {
	known := []string{jobset.ServiceEndpointsCluster, jobset.ServiceEndpointsController, jobset.ServiceEndpointsAuto}
	value, set := js.Annotations[jobset.ServiceEndpointsKey]
	if !set || slices.Contains(known, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(field.NewPath("metadata", "annotations").Key(jobset.ServiceEndpointsKey), value, known)}
}

// finishedAlready is what users read about a field that can be changed until the set has finished.
const finishedAlready = "cannot be changed after the JobSet has finished; delete and recreate the JobSet"

func validateActiveDeadline(seconds *int64, path *field.Path) field.ErrorList {
	if seconds == nil || *seconds >= 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *seconds, "must be 1 or more; leave it out for no limit")}
}

func validateActiveDeadlineUpdate(next, prev *jobset.JobSet, path *field.Path) field.ErrorList {
	if !finished(&prev.Status) || equality.Semantic.DeepEqual(next.Spec.ActiveDeadlineSeconds, prev.Spec.ActiveDeadlineSeconds) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, finishedAlready)}
}
