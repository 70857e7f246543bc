// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	return append(errs, explainDefaults(generic.Changed(working, prev.Spec.ReplicatedJobs, path, jobChanges(suspended, opts)))...)
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

const (
	// immutable is what users read about every field that must stay as it was created.
	immutable = "cannot be changed after creation; delete and recreate the JobSet"
	// fieldIsImmutable begins what they read about replicatedJobs and managedBy. Clients of upstream look for these words.
	fieldIsImmutable = "field is immutable"
	// fieldImmutable is the same as immutable for these fields.
	fieldImmutable = fieldIsImmutable + ": " + immutable
)

// always explains fields that can never be changed.
func always(string) string { return immutable }

const whileSuspended = fieldIsImmutable + " unless the JobSet is suspended: set spec.suspend to true"

var (
	directives = regexp.MustCompile(`\.template\.spec\.template\.` +
		`(metadata\.(labels|annotations)|spec\.(nodeSelector|tolerations|schedulingGates))\b`)
	resources   = regexp.MustCompile(`\.spec\.(containers|initContainers)\[\d+\]\.resources\.(requests|limits)\b`)
	elasticSize = regexp.MustCompile(`^spec\.replicatedJobs\[\d+\]\.template\.spec\.(parallelism|completions)$`)
)

// jobChanges returns what users can do about a change of a field of replicatedJobs.
func jobChanges(suspended bool, opts gates.Gates) func(path string) string {
	return func(path string) string {
		switch {
		case elasticSize.MatchString(path) && !opts.ElasticJobSet:
			return fieldIsImmutable + " while the feature gate ElasticJobSet of the API server is off; delete and recreate the JobSet"
		case elasticSize.MatchString(path):
			return fieldIsImmutable + " unless completionMode is Indexed; delete and recreate the JobSet"
		case suspended:
			return fieldImmutable
		case directives.MatchString(path), opts.MutablePodResourcesForSuspendedJobSets && resources.MatchString(path):
			return whileSuspended
		}
		return fieldImmutable
	}
}

// validateElastic checks a change of the size of an Indexed Job. The texts of the last three errors are known to clients.
func validateElastic(next, prev *jobset.ReplicatedJob, stored *jobset.JobSetStatus, path *field.Path) field.ErrorList {
	job, was := &next.Template.Spec, &prev.Template.Spec
	if equality.Semantic.DeepEqual(job.Parallelism, was.Parallelism) && equality.Semantic.DeepEqual(job.Completions, was.Completions) {
		return nil
	}
	if finished(stored) {
		return field.ErrorList{field.Forbidden(path, "parallelism and completions "+finishedAlready)}
	}
	var errs field.ErrorList
	if job.Completions == nil && was.Completions != nil {
		errs = append(errs, field.Required(path.Child("completions"), "must be set: a Job with completionMode Indexed needs completions"))
	}
	errs = append(errs, validateNewSize(job.Parallelism, was.Parallelism, path, "parallelism")...)
	errs = append(errs, validateNewSize(job.Completions, was.Completions, path, "completions")...)
	if job.Parallelism != nil && job.Completions != nil && *job.Parallelism != *job.Completions {
		errs = append(errs, field.Invalid(path.Child("completions"), *job.Completions,
			fmt.Sprintf("completions must be equal to parallelism for Elastic Indexed Jobs, which is %d: change both", *job.Parallelism)))
	}
	return errs
}

// validateNewSize checks a size that differs from the stored one.
func validateNewSize(next, prev *int32, path *field.Path, name string) field.ErrorList {
	if next == nil || *next >= 1 || equality.Semantic.DeepEqual(next, prev) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child(name), *next, name+" must be >= 1; suspend the JobSet to stop its pods")}
}

// resetResources resets the requests and limits of containers that both templates have.
func resetResources(rj, was *jobset.ReplicatedJob) {
	pod, old := &rj.Template.Spec.Template.Spec, &was.Template.Spec.Template.Spec
	resetContainerResources(pod.InitContainers, old.InitContainers)
	resetContainerResources(pod.Containers, old.Containers)
}

// resetContainerResources looks for each container at its old index only: the order of containers may not change, and names
// need not be unique in an object that was stored under other rules.
func resetContainerResources(next, prev []corev1.Container) {
	for i := range min(len(next), len(prev)) {
		if next[i].Name == prev[i].Name {
			next[i].Resources.Requests, next[i].Resources.Limits = prev[i].Resources.Requests, prev[i].Resources.Limits
		}
	}
}

// ManagedByOther returns whether another controller makes something of the set: maybe not the Jobs that the templates describe.
func ManagedByOther(spec *jobset.JobSetSpec) bool {
	return spec.ManagedBy != nil && *spec.ManagedBy != jobset.ControllerName
}

func validateManagedByUpdate(next, prev *string, path *field.Path) field.ErrorList {
	return generic.Changed(next, prev, path, func(string) string { return fieldImmutable })
}
