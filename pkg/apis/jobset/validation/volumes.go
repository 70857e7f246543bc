// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

var retentions = []jobset.RetentionPolicyType{jobset.RetentionPolicyDelete, jobset.RetentionPolicyRetain}

// validateVolumeClaimPolicies checks the templates of claims on their own and against the pods that mount them. Whether
// claims of these names exist already is a question to the main API, which an admission plugin asks.
func validateVolumeClaimPolicies(js *jobset.JobSet, specPath *field.Path) field.ErrorList {
	path := specPath.Child("volumeClaimPolicies")
	policies := js.Spec.VolumeClaimPolicies
	var errs field.ErrorList
	uses := podVolumes(&js.Spec, specPath.Child("replicatedJobs"))
	seen := map[string]struct{}{}
	for i := range policies {
		errs = append(errs, validateVolumeClaimPolicy(&policies[i], path.Index(i))...)
		for j := range policies[i].Templates {
			claim := &policies[i].Templates[j]
			// Clients know the path of names with a singular "template".
			name := path.Index(i).Child("template").Index(j).Child("name")
			_, known := seen[claim.Name]
			errs = append(errs, validateClaimName(js.Name, claim.Name, seen, name)...)
			if claim.Name != "" && !known { // what uses a name is looked at once
				errs = append(errs, uses.validate(claim.Name, specPath.Child("replicatedJobs"))...)
			}
			errs = append(errs, podtemplate.ValidateClaimSpec(&claim.Spec, path.Index(i).Child("templates").Index(j).Child("spec"))...)
		}
	}
	return errs
}

func validateVolumeClaimPolicy(policy *jobset.VolumeClaimPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if policy.Templates == nil {
		errs = append(errs, field.Required(path.Child("templates"), "must list the claims to create"))
	}
	if retention := policy.RetentionPolicy; retention != nil && retention.WhenDeleted != nil {
		errs = append(errs, enum(path.Child("retentionPolicy", "whenDeleted"), *retention.WhenDeleted, retentions)...)
	}
	for i := range policy.Templates {
		if policy.Templates[i].Namespace != "" {
			return append(errs, field.Invalid(path, field.OmitValueType{},
				"namespace cannot be set for VolumeClaimPolicies templates: leave it out; claims are created in the namespace of the JobSet"))
		}
	}
	return errs
}

func validateClaimName(set, template string, seen map[string]struct{}, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if _, dup := seen[template]; dup && template != "" {
		errs = append(errs, field.Invalid(path, template, "must be unique among the claim templates of the JobSet"))
	}
	seen[template] = struct{}{}
	name := ClaimName(set, template)
	switch {
	case template == "":
		errs = append(errs, field.Required(path, "must be set: claims are named after it"))
	case len(name) > MaxNameLength:
		errs = append(errs, field.Invalid(path, template, fmt.Sprintf(
			"must be shorter, because the name of a claim has at most %d characters: %q would have %d; or shorten metadata.name", MaxNameLength,
			name, len(name))))
	case len(validation.IsDNS1123Subdomain(template)) > 0:
		errs = append(errs, field.Invalid(path, template, "must consist of "+subdomainCharacters))
	}
	return errs
}

// volumeUses are the volumes of all pods of a set.
type volumeUses struct {
	declared map[string][]*field.Path
	mounted  map[string]struct{}
}

func podVolumes(spec *jobset.JobSetSpec, path *field.Path) volumeUses {
	uses := volumeUses{declared: map[string][]*field.Path{}, mounted: map[string]struct{}{}}
	if len(spec.VolumeClaimPolicies) == 0 {
		return uses
	}
	for i := range spec.ReplicatedJobs {
		pod := &spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		volumes := path.Index(i).Child("template", "spec", "template", "spec", "volumes")
		for v := range pod.Volumes {
			name := pod.Volumes[v].Name
			uses.declared[name] = append(uses.declared[name], volumes.Index(v).Child("name"))
		}
		for _, containers := range [][]corev1.Container{pod.Containers, pod.InitContainers} {
			for c := range containers {
				for _, mount := range containers[c].VolumeMounts {
					uses.mounted[mount.Name] = struct{}{}
				}
			}
		}
	}
	return uses
}

// validate checks that a claim template does not clash with a volume, and that a container mounts it.
func (u volumeUses) validate(template string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, p := range u.declared[template] {
		errs = append(errs, field.Invalid(p, template, "must not be the name of a claim template in volumeClaimPolicies: rename one of the two"))
	}
	if _, ok := u.mounted[template]; !ok {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
			"must have a container or init container that mounts %q, because volumeClaimPolicies has a claim template of that name: add a "+
				"volumeMount, or remove the template", template)))
	}
	return errs
}
