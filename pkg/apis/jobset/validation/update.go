// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

// valueIsImmutable is the message of the published schema's transition rules.
const valueIsImmutable = "Value is immutable"

// validateTransition checks what may change from one spec to the next.
func validateTransition(next, prev *jobset.JobSet, opts gates.Gates) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateImmutableSections(&next.Spec, &prev.Spec, path)
	errs = append(errs, validateReplicatedJobsUpdate(next, prev, opts, path.Child("replicatedJobs"))...)
	if !equality.Semantic.DeepEqual(next.Spec.ManagedBy, prev.Spec.ManagedBy) {
		errs = append(errs, field.Invalid(path.Child("managedBy"), valueOf(next.Spec.ManagedBy),
			apivalidation.FieldImmutableErrorMsg+": must stay as it was created; create a new JobSet for another controller"))
	}
	if finished(&prev.Status) && !equality.Semantic.DeepEqual(next.Spec.ActiveDeadlineSeconds, prev.Spec.ActiveDeadlineSeconds) {
		errs = append(errs, field.Forbidden(path.Child("activeDeadlineSeconds"), "must not change once the JobSet has finished: create a new JobSet"))
	}
	return errs
}

// validateImmutableSections holds on to the sections that are set on both sides. A section may be added later; all but
// the success policy may be removed.
func validateImmutableSections(next, prev *jobset.JobSetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	immutable := func(name string, next, prev any, both bool) {
		if both && !equality.Semantic.DeepEqual(next, prev) {
			errs = append(errs, field.Invalid(path.Child(name), field.OmitValueType{},
				valueIsImmutable+": must stay as it was created; create a new JobSet to change it"))
		}
	}
	immutable("network", next.Network, prev.Network, next.Network != nil && prev.Network != nil)
	immutable("successPolicy", next.SuccessPolicy, prev.SuccessPolicy, next.SuccessPolicy != nil && prev.SuccessPolicy != nil)
	immutable("failurePolicy", next.FailurePolicy, prev.FailurePolicy, next.FailurePolicy != nil && prev.FailurePolicy != nil)
	immutable("startupPolicy", next.StartupPolicy, prev.StartupPolicy, next.StartupPolicy != nil && prev.StartupPolicy != nil)
	immutable("volumeClaimPolicies", next.VolumeClaimPolicies, prev.VolumeClaimPolicies, next.VolumeClaimPolicies != nil && prev.VolumeClaimPolicies != nil)
	if next.SuccessPolicy == nil && prev.SuccessPolicy != nil {
		errs = append(errs, field.Forbidden(path.Child("successPolicy"), fmt.Sprintf(
			"must not be removed: send the stored value, with operator %s", prev.SuccessPolicy.Operator)))
	}
	return errs
}

// validateReplicatedJobsUpdate compares the lists after it has taken out of the new one, in a copy, what may change.
func validateReplicatedJobsUpdate(next, prev *jobset.JobSet, opts gates.Gates, path *field.Path) field.ErrorList {
	stored := jobNames(&prev.Spec)
	suspended := ptr.Deref(next.Spec.Suspend, false) || ptr.Deref(prev.Spec.Suspend, false)
	working := make([]jobset.ReplicatedJob, len(next.Spec.ReplicatedJobs))
	var errs field.ErrorList
	for i := range next.Spec.ReplicatedJobs {
		next.Spec.ReplicatedJobs[i].DeepCopyInto(&working[i])
		rj, p := &working[i], path.Index(i)
		was, existed := stored[rj.Name]
		if !existed {
			continue
		}
		if i < len(prev.Spec.ReplicatedJobs) && prev.Spec.ReplicatedJobs[i].Name == rj.Name {
			was = &prev.Spec.ReplicatedJobs[i] // what is stored may have a name twice
		}
		if opts.ElasticJobSet && isIndexed(rj) {
			errs = append(errs, validateElastic(rj, was, &prev.Status, p.Child("template", "spec"))...)
			rj.Template.Spec.Parallelism, rj.Template.Spec.Completions = was.Template.Spec.Parallelism, was.Template.Spec.Completions
		}
		if suspended {
			maskDirectives(rj, was)
		}
		if suspended && opts.MutablePodResourcesForSuspendedJobSets {
			maskResources(rj, was)
		}
		if rj.DependsOn != nil && was.DependsOn != nil && !equality.Semantic.DeepEqual(rj.DependsOn, was.DependsOn) {
			errs = append(errs, field.Invalid(p.Child("dependsOn"), field.OmitValueType{},
				valueIsImmutable+": must stay as it was created; create a new JobSet to change it"))
			rj.DependsOn = was.DependsOn
		}
	}
	if !equality.Semantic.DeepEqual(working, prev.Spec.ReplicatedJobs) {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, immutableJobs(working, prev.Spec.ReplicatedJobs, suspended, opts)))
	}
	return errs
}

// maskDirectives takes out what queueing systems set on pods while a set is suspended, or in the write that suspends or
// resumes it.
func maskDirectives(rj, was *jobset.ReplicatedJob) {
	pod, old := &rj.Template.Spec.Template, &was.Template.Spec.Template
	pod.Labels, pod.Annotations = old.Labels, old.Annotations
	pod.Spec.NodeSelector = old.Spec.NodeSelector
	pod.Spec.Tolerations = old.Spec.Tolerations
	pod.Spec.SchedulingGates = old.Spec.SchedulingGates
}
