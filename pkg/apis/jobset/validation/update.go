// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

// validateTransition checks what may change from one spec to the next.
func validateTransition(next, prev *jobset.JobSet, opts gates.Gates) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateSections(&next.Spec, &prev.Spec, path)
	errs = append(errs, validateReplicatedJobsUpdate(next, prev, opts, path.Child("replicatedJobs"))...)
	errs = append(errs, validateManagedByUpdate(next.Spec.ManagedBy, prev.Spec.ManagedBy, path.Child("managedBy"))...)
	errs = append(errs, validateGangSizes(next, prev, opts, path.Child("replicatedJobs"))...)
	errs = append(errs, validateSchedulingUpdate(next, prev, path.Child("scheduling"))...)
	return append(errs, validateActiveDeadlineUpdate(next, prev, path.Child("activeDeadlineSeconds"))...)
}

func validateSections(next, prev *jobset.JobSetSpec, path *field.Path) field.ErrorList {
	errs := validateSection(next.Network, prev.Network, path.Child("network"))
	errs = append(errs, validateSection(next.SuccessPolicy, prev.SuccessPolicy, path.Child("successPolicy"))...)
	errs = append(errs, validateSection(next.FailurePolicy, prev.FailurePolicy, path.Child("failurePolicy"))...)
	errs = append(errs, validateSection(next.StartupPolicy, prev.StartupPolicy, path.Child("startupPolicy"))...)
	errs = append(errs, validateSection(list(next.VolumeClaimPolicies), list(prev.VolumeClaimPolicies), path.Child("volumeClaimPolicies"))...)
	if next.SuccessPolicy == nil && prev.SuccessPolicy != nil {
		errs = append(errs, field.Forbidden(path.Child("successPolicy"), fmt.Sprintf(
			"cannot be removed: send the stored value, which has the operator %s", prev.SuccessPolicy.Operator)))
	}
	return errs
}

// validateSection checks a section of the spec that may be added and removed, but not changed.
func validateSection[T any](next, prev *T, path *field.Path) field.ErrorList {
	if next == nil || prev == nil {
		return nil
	}
	return generic.Changed(*next, *prev, path, always)
}

// list returns a section that is a list: nil if it is not set.
func list[T any](items []T) *[]T {
	if items == nil {
		return nil
	}
	return &items
}

// validateReplicatedJobsUpdate compares the lists after it has reset, in a copy of the new one, the fields that may change and
// those that are reported on their own.
func validateReplicatedJobsUpdate(next, prev *jobset.JobSet, opts gates.Gates, path *field.Path) field.ErrorList {
	stored := jobNames(&prev.Spec)
	suspended := ptr.Deref(next.Spec.Suspend, false) || ptr.Deref(prev.Spec.Suspend, false)
	working := make([]jobset.ReplicatedJob, len(next.Spec.ReplicatedJobs))
	var errs field.ErrorList
	for i := range next.Spec.ReplicatedJobs {
		rj := &working[i]
		next.Spec.ReplicatedJobs[i].DeepCopyInto(rj)
		was, existed := stored[rj.Name]
		if i < len(prev.Spec.ReplicatedJobs) && prev.Spec.ReplicatedJobs[i].Name == rj.Name {
			was = &prev.Spec.ReplicatedJobs[i] // a stored list may have a name twice
		}
		if existed {
			errs = append(errs, validateReplicatedJobUpdate(rj, was, &prev.Status, suspended, opts, path.Index(i))...)
		}
	}
	return append(errs, generic.Changed(working, prev.Spec.ReplicatedJobs, path, jobChanges(suspended, opts))...)
}

// validateReplicatedJobUpdate checks the fields that may change, and resets them in rj.
func validateReplicatedJobUpdate(
	rj, was *jobset.ReplicatedJob, stored *jobset.JobSetStatus, suspended bool, opts gates.Gates, path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	if opts.ElasticJobSet && isIndexed(rj) {
		errs = append(errs, validateElastic(rj, was, stored, path.Child("template", "spec"))...)
		rj.Template.Spec.Parallelism, rj.Template.Spec.Completions = was.Template.Spec.Parallelism, was.Template.Spec.Completions
	}
	if suspended {
		resetDirectives(rj, was)
	}
	if suspended && opts.MutablePodResourcesForSuspendedJobSets {
		resetResources(rj, was)
	}
	if changed := validateSection(list(rj.DependsOn), list(was.DependsOn), path.Child("dependsOn")); len(changed) > 0 {
		errs = append(errs, changed...)
		rj.DependsOn = was.DependsOn
	}
	return errs
}

// resetDirectives resets what queueing systems set on pods while a set is suspended, or in the write that suspends or
// resumes it.
func resetDirectives(rj, was *jobset.ReplicatedJob) {
	pod, old := &rj.Template.Spec.Template, &was.Template.Spec.Template
	pod.Labels, pod.Annotations = old.Labels, old.Annotations
	pod.Spec.NodeSelector = old.Spec.NodeSelector
	pod.Spec.Tolerations = old.Spec.Tolerations
	pod.Spec.SchedulingGates = old.Spec.SchedulingGates
}
