// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/podgroups"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

// validateEntryTargets checks that the entries have each replicatedJob as a target exactly once.
func validateEntryTargets(spec *jobset.JobSetSpec, path *field.Path) field.ErrorList {
	entries := spec.Scheduling.ReplicatedJobs
	if len(entries) == 0 {
		return nil
	}
	var errs field.ErrorList
	byName, entryOf := jobNames(spec), make(map[string]int, len(spec.ReplicatedJobs))
	for i := range entries {
		targets := path.Index(i).Child("targetReplicatedJobs")
		if len(entries[i].TargetReplicatedJobs) == 0 {
			errs = append(errs, field.Required(targets, "must have the names of 1 to 50 replicatedJobs"))
		}
		for j, name := range entries[i].TargetReplicatedJobs {
			errs = append(errs, validateEntryTarget(name, i, byName, entryOf, targets.Index(j))...)
		}
	}
	missing, first := 0, ""
	for i := range spec.ReplicatedJobs {
		if _, found := entryOf[spec.ReplicatedJobs[i].Name]; !found {
			if missing++; missing == 1 {
				first = spec.ReplicatedJobs[i].Name
			}
		}
	}
	if missing > 0 && len(errs) == 0 {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
			"must have each replicatedJob as a target; %d are missing, the first one is %q", missing, first)))
	}
	return errs
}

func validateEntryTarget(name string, entry int, byName map[string]*jobset.ReplicatedJob, entryOf map[string]int,
	path *field.Path) field.ErrorList {
	if errs := generic.CharactersWithin(name, maxTargetLength, path); len(errs) > 0 {
		return errs
	}
	if _, found := byName[name]; !found {
		return field.ErrorList{field.Invalid(path, name, existing(byName))}
	}
	other, taken := entryOf[name]
	switch {
	case taken && other == entry:
		return field.ErrorList{podtemplate.Duplicate(path, name)}
	case taken:
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("must be a target once: it is one of spec.scheduling.replicatedJobs[%d] too",
			other))}
	}
	entryOf[name] = entry
	return nil
}

// validateOwnGroups refuses templates that choose a group of their own.
func validateOwnGroups(spec *jobset.JobSetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.ReplicatedJobs {
		job, p := &spec.ReplicatedJobs[i].Template.Spec, path.Index(i).Child("template", "spec")
		if job.Scheduling != nil {
			errs = append(errs, field.Forbidden(p.Child("scheduling"), setsOwnSchedulingName))
		}
		if job.Template.Spec.SchedulingGroup != nil {
			errs = append(errs, field.Forbidden(p.Child("template", "spec", "schedulingGroup"), setsOwnSchedulingName))
		}
	}
	return errs
}

// podGroups returns what the groups of a set result from.
func podGroups(js *jobset.JobSet) podgroups.Set {
	spec := &js.Spec
	out := podgroups.Set{Namespace: js.Namespace, Name: js.Name, Jobs: make([]podgroups.Job, len(spec.ReplicatedJobs))}
	inOrder := spec.StartupPolicy != nil && spec.StartupPolicy.StartupPolicyOrder == jobset.InOrder
	for i := range spec.ReplicatedJobs {
		rj, job := &spec.ReplicatedJobs[i], &out.Jobs[i]
		*job = podgroups.Job{Name: rj.Name, Replicas: max(replicas(rj), 0), Pods: podgroups.PodsAtOnce(&rj.Template.Spec)}
		for j := range rj.DependsOn {
			job.After = append(job.After, rj.DependsOn[j].Name)
		}
		if inOrder && i > 0 {
			job.After = append(job.After, spec.ReplicatedJobs[i-1].Name)
		}
	}
	for i := range spec.Scheduling.ReplicatedJobs {
		e := &spec.Scheduling.ReplicatedJobs[i]
		policy := e.SchedulingPolicy
		if e.Job != nil {
			policy = e.Job.SchedulingPolicy
		}
		out.Entries = append(out.Entries, podgroups.Entry{Targets: e.TargetReplicatedJobs, PerJob: e.Job != nil, Gang: isGang(policy)})
	}
	if len(out.Entries) == 0 {
		out.Group(isGang(spec.Scheduling.SchedulingPolicy))
	}
	return out
}

// isGang returns whether a policy makes a gang of a group: unless it says basic.
func isGang(policy *jobset.SchedulingPolicy) bool { return policy == nil || policy.Basic == nil }

// validateGroups checks what results from a valid spec.scheduling.
func validateGroups(js *jobset.JobSet, path, jobs *field.Path) field.ErrorList {
	set := podGroups(js)
	errs := validatePriorities(&js.Spec, set.Entries, jobs)
	errs = append(errs, validateMinCounts(&js.Spec, set, path)...)
	if i := set.Deadlock(); i >= 0 {
		errs = append(errs, field.Invalid(path.Child("replicatedJobs").Index(i), field.OmitValueType{},
			"must not be a gang of replicatedJobs that start one after another, because a gang starts only once all of its pods exist: add an "+
				"item for each of them"))
	}
	if n := set.Count(); n > podgroups.MaxGroups {
		return append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
			"must not result in more than %d groups, which is the limit of a Workload; it results in %d", podgroups.MaxGroups, n)))
	}
	if name := podgroups.Duplicate(set.Groups()); name != "" {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
			"must not result in two groups of one name, %q: rename a replicatedJob, or shorten metadata.name", name)))
	}
	return errs
}

// validatePriorities checks that pods of one group have one priority.
func validatePriorities(spec *jobset.JobSetSpec, entries []podgroups.Entry, path *field.Path) field.ErrorList {
	entryOf := make(map[string]int, len(spec.ReplicatedJobs))
	for i := range entries {
		for _, name := range entries[i].Targets {
			entryOf[name] = i
		}
	}
	var errs field.ErrorList
	first := make(map[int]*jobset.ReplicatedJob, len(entries))
	for i := range spec.ReplicatedJobs {
		rj := &spec.ReplicatedJobs[i]
		other := first[entryOf[rj.Name]]
		if other == nil {
			first[entryOf[rj.Name]] = rj
			continue
		}
		want, got := other.Template.Spec.Template.Spec.PriorityClassName, rj.Template.Spec.Template.Spec.PriorityClassName
		if want != got {
			errs = append(errs, field.Invalid(path.Index(i).Child("template", "spec", "template", "spec", "priorityClassName"), got, fmt.Sprintf(
				"must be %q, as in replicatedJob %q, because spec.scheduling puts the pods of both into one group", want, other.Name)))
		}
	}
	return errs
}

// validateMinCounts checks that gangs do not wait for more pods than they can have.
func validateMinCounts(spec *jobset.JobSetSpec, set podgroups.Set, path *field.Path) field.ErrorList {
	entries := spec.Scheduling.ReplicatedJobs
	if policy := spec.Scheduling.SchedulingPolicy; len(entries) == 0 && !set.Whole && policy != nil && policy.Gang != nil &&
		policy.Gang.MinCount != nil {
		return field.ErrorList{field.Forbidden(path.Child("schedulingPolicy", "gang", "minCount"),
			"must not be set while replicatedJobs start one after another, each as a gang of its own: leave it out, or add items to "+
				"spec.scheduling.replicatedJobs")}
	}
	if len(entries) == 0 {
		return minCountWithin(spec.Scheduling.SchedulingPolicy, set.Pods(0), path)
	}
	var errs field.ErrorList
	for i := range entries {
		p := path.Child("replicatedJobs").Index(i)
		errs = append(errs, minCountWithin(entries[i].SchedulingPolicy, set.Pods(i), p)...)
		if entries[i].Job != nil {
			errs = append(errs, minCountWithin(entries[i].Job.SchedulingPolicy, set.Pods(i), p.Child("job"))...)
		}
	}
	return errs
}

// minCountWithin checks that the number of pods that a gang waits for is no larger than that of its pods.
func minCountWithin(policy *jobset.SchedulingPolicy, pods int64, path *field.Path) field.ErrorList {
	if policy == nil || policy.Gang == nil || policy.Gang.MinCount == nil || int64(*policy.Gang.MinCount) <= pods {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("schedulingPolicy", "gang", "minCount"), *policy.Gang.MinCount,
		fmt.Sprintf("must be at most %d, the number of pods of the group that run at the same time", pods))}
}
