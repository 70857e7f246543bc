// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

func validateReplicatedJobs(js *jobset.JobSet, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]struct{}{}
	for i := range js.Spec.ReplicatedJobs {
		rj, p := &js.Spec.ReplicatedJobs[i], path.Index(i)
		if _, dup := seen[rj.Name]; dup {
			errs = append(errs, podtemplate.Duplicate(p, rj.Name))
		}
		seen[rj.Name] = struct{}{}
		errs = append(errs, validateReplicatedJob(rj, p)...)
		if !ManagedByOther(&js.Spec) {
			errs = append(errs, podtemplate.ValidateJob(&rj.Template, p.Child("template"))...)
		}
	}
	return append(errs, validateNames(js, field.NewPath("metadata"), path)...)
}

func validateReplicatedJob(rj *jobset.ReplicatedJob, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if rj.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must be set: it becomes part of the names of the Jobs"))
	}
	errs = append(errs, validateReplicas(rj, path.Child("replicas"))...)
	if rj.GroupName != nil {
		errs = append(errs, label(path.Child("groupName"), *rj.GroupName, "")...)
	}
	return append(errs, podtemplate.ValidateJobTemplate(&rj.Template, path.Child("template"))...)
}

// validateReplicas bounds the number of Jobs and that of pods, which the controller counts in 32 bits.
func validateReplicas(rj *jobset.ReplicatedJob, path *field.Path) field.ErrorList {
	count := replicas(rj)
	if count < 0 {
		return field.ErrorList{field.Invalid(path, count, "must be 0 or more")}
	}
	parallelism := ptr.Deref(rj.Template.Spec.Parallelism, 1)
	if pods := int64(parallelism) * int64(count); pods > math.MaxInt32 {
		return field.ErrorList{field.Invalid(path, count, fmt.Sprintf(
			"must not result in more than %d pods: replicatedJob %q has %d replicas times parallelism %d", math.MaxInt32, rj.Name, count,
			parallelism))}
	}
	return nil
}

// jobNames returns the replicatedJobs by name; of two with one name, the first.
func jobNames(spec *jobset.JobSetSpec) map[string]*jobset.ReplicatedJob {
	byName := make(map[string]*jobset.ReplicatedJob, len(spec.ReplicatedJobs))
	for i := range spec.ReplicatedJobs {
		rj := &spec.ReplicatedJobs[i]
		if _, dup := byName[rj.Name]; !dup {
			byName[rj.Name] = rj
		}
	}
	return byName
}

// validateTargets checks that a replicatedJob with each name exists. A name may be listed twice.
func validateTargets(byName map[string]*jobset.ReplicatedJob, targets []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, target := range targets {
		if _, ok := byName[target]; !ok {
			errs = append(errs, field.Invalid(path.Index(i), target, existing(byName)))
		}
	}
	return errs
}

// existing says which names of replicatedJobs there are, if they are few.
func existing(byName map[string]*jobset.ReplicatedJob) string {
	const few = 5
	if len(byName) == 0 || len(byName) > few {
		return "must be the name of a replicatedJob of this JobSet"
	}
	return fmt.Sprintf("must be the name of a replicatedJob of this JobSet: %s", strings.Join(slices.Sorted(maps.Keys(byName)), ", "))
}
