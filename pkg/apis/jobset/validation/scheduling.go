// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

// Bounds of the lists of spec.scheduling.
const (
	MaxSchedulingEntries  = 50
	MaxSchedulingTargets  = 50 // of each entry
	MaxSchedulingClaims   = 4  // of each group
	MaxTopologies         = 1
	maxTargetLength       = 256
	schedulingGate        = "must not be set while the feature gate JobSetWorkloadAwareSchedulingAPI of the API server is off"
	insteadOfJob          = "must not be set together with job: set it in job"
	insteadOfEntries      = "must not be set together with replicatedJobs: set it in each of their items"
	exampleTopology       = "must be the key of a label of nodes, for example topology.kubernetes.io/rack"
	setsOwnSchedulingName = "must not be set together with spec.scheduling of the JobSet, which groups the pods"
)

func schedulingSizes(s *generic.Sizes, scheduling *jobset.JobSetSchedulingConfiguration, path *field.Path) {
	topologySizes(s, scheduling.SchedulingConstraints, path)
	entries := path.Child("replicatedJobs")
	if !s.List(entries, len(scheduling.ReplicatedJobs), MaxSchedulingEntries) {
		return
	}
	for i := range scheduling.ReplicatedJobs {
		e, p := &scheduling.ReplicatedJobs[i], entries.Index(i)
		s.List(p.Child("targetReplicatedJobs"), len(e.TargetReplicatedJobs), MaxSchedulingTargets)
		s.List(p.Child("resourceClaims"), len(e.ResourceClaims), MaxSchedulingClaims)
		topologySizes(s, e.SchedulingConstraints, p)
		if e.Job != nil {
			s.List(p.Child("job", "resourceClaims"), len(e.Job.ResourceClaims), MaxSchedulingClaims)
			topologySizes(s, e.Job.SchedulingConstraints, p.Child("job"))
		}
	}
}

func topologySizes(s *generic.Sizes, constraints *jobset.SchedulingConstraints, path *field.Path) {
	if constraints != nil {
		s.List(path.Child("schedulingConstraints", "topology"), len(constraints.Topology), MaxTopologies)
	}
}

// validateScheduling checks how the pods of a set are grouped. What follows from the groups is checked once each of them is valid.
func validateScheduling(js *jobset.JobSet, opts gates.Gates, specPath *field.Path) field.ErrorList {
	scheduling, path := js.Spec.Scheduling, specPath.Child("scheduling")
	switch {
	case scheduling == nil:
		return nil
	case !opts.JobSetWorkloadAwareSchedulingAPI:
		return field.ErrorList{field.Forbidden(path, schedulingGate)}
	case len(js.Spec.ReplicatedJobs) == 0:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			"must not be set without replicatedJobs, which have the pods to schedule")}
	}
	errs := validateGrouping(grouping{scheduling.SchedulingPolicy, scheduling.SchedulingConstraints, scheduling.DisruptionMode, nil}, path)
	if len(scheduling.ReplicatedJobs) > 0 {
		errs = append(errs, forbidden(grouping{scheduling.SchedulingPolicy, scheduling.SchedulingConstraints, scheduling.DisruptionMode, nil},
			insteadOfEntries, path)...)
	}
	for i := range scheduling.ReplicatedJobs {
		errs = append(errs, validateEntry(&scheduling.ReplicatedJobs[i], path.Child("replicatedJobs").Index(i))...)
	}
	errs = append(errs, validateEntryTargets(&js.Spec, path.Child("replicatedJobs"))...)
	errs = append(errs, validateOwnGroups(&js.Spec, specPath.Child("replicatedJobs"))...)
	if len(errs) > 0 {
		return errs
	}
	return validateGroups(js, path, specPath.Child("replicatedJobs"))
}

// grouping is what the scheduler is asked of one group.
type grouping struct {
	policy      *jobset.SchedulingPolicy
	constraints *jobset.SchedulingConstraints
	disruption  *jobset.DisruptionMode
	claims      []jobset.SchedulingResourceClaim
}

func validateEntry(e *jobset.ReplicatedJobScheduling, path *field.Path) field.ErrorList {
	own := grouping{e.SchedulingPolicy, e.SchedulingConstraints, e.DisruptionMode, e.ResourceClaims}
	errs := validateGrouping(own, path)
	if e.Job == nil {
		return errs
	}
	if len(e.TargetReplicatedJobs) > 1 {
		errs = append(errs, field.Invalid(path.Child("targetReplicatedJobs"), field.OmitValueType{},
			"must have exactly one item, because job is set: add an item to spec.scheduling.replicatedJobs for each"))
	}
	errs = append(errs, forbidden(own, insteadOfJob, path)...)
	return append(errs, validateGrouping(grouping{e.Job.SchedulingPolicy, e.Job.SchedulingConstraints, e.Job.DisruptionMode,
		e.Job.ResourceClaims}, path.Child("job"))...)
}

// forbidden reports each field that is set.
func forbidden(g grouping, detail string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		set  bool
		name string
	}{
		{g.policy != nil, "schedulingPolicy"}, {g.constraints != nil, "schedulingConstraints"},
		{g.disruption != nil, "disruptionMode"}, {len(g.claims) > 0, "resourceClaims"},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), detail))
		}
	}
	return errs
}

func validateGrouping(g grouping, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p := g.policy; p != nil {
		at := path.Child("schedulingPolicy")
		errs = append(errs, oneOf(p.Basic != nil, p.Gang != nil, "basic", "gang", at)...)
		if p.Gang != nil && p.Gang.MinCount != nil && *p.Gang.MinCount < 1 {
			errs = append(errs, field.Invalid(at.Child("gang", "minCount"), *p.Gang.MinCount,
				"must be 1 or more; leave it out for all pods of the group"))
		}
	}
	if g.constraints != nil {
		for i := range g.constraints.Topology {
			errs = append(errs, validateTopologyKey(g.constraints.Topology[i].Key,
				path.Child("schedulingConstraints", "topology").Index(i).Child("key"))...)
		}
	}
	if m := g.disruption; m != nil {
		errs = append(errs, oneOf(m.Single != nil, m.All != nil, "single", "all", path.Child("disruptionMode"))...)
	}
	return append(errs, validateClaims(g.claims, path.Child("resourceClaims"))...)
}

// oneOf checks that exactly one of two fields is set.
func oneOf(a, b bool, first, second string, path *field.Path) field.ErrorList {
	switch {
	case a && b:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must have only one of "+first+" and "+second)}
	case !a && !b:
		return field.ErrorList{field.Required(path, "must have one of "+first+" and "+second+", for example "+second+": {}")}
	}
	return nil
}

func validateTopologyKey(key string, path *field.Path) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(path, exampleTopology)}
	}
	if len(validation.IsQualifiedName(key)) > 0 {
		return field.ErrorList{field.Invalid(path, key, exampleTopology)}
	}
	return nil
}

func validateClaims(claims []jobset.SchedulingResourceClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]struct{}{}
	for i := range claims {
		c, p := &claims[i], path.Index(i)
		if _, dup := seen[c.Name]; dup {
			errs = append(errs, podtemplate.Duplicate(p, c.Name))
		}
		seen[c.Name] = struct{}{}
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(p.Child("name"), "must be set: it identifies the claim in the group"))
		case len(validation.IsDNS1123Label(c.Name)) > 0:
			errs = append(errs, field.Invalid(p.Child("name"), c.Name,
				"must have at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit"))
		}
		errs = append(errs, oneOfClaims(c, p)...)
	}
	return errs
}

func oneOfClaims(c *jobset.SchedulingResourceClaim, path *field.Path) field.ErrorList {
	const names = "resourceClaimName and resourceClaimTemplateName"
	switch {
	case c.ResourceClaimName != nil && c.ResourceClaimTemplateName != nil:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must have only one of "+names)}
	case c.ResourceClaimName == nil && c.ResourceClaimTemplateName == nil:
		return field.ErrorList{field.Required(path, "must have one of "+names)}
	}
	name, p := c.ResourceClaimName, path.Child("resourceClaimName")
	if name == nil {
		name, p = c.ResourceClaimTemplateName, path.Child("resourceClaimTemplateName")
	}
	if len(validation.IsDNS1123Subdomain(*name)) > 0 {
		return field.ErrorList{field.Invalid(p, *name, "must consist of "+subdomainCharacters)}
	}
	return nil
}
