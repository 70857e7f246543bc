// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

// Bounds of a SequentialJob.
const (
	MaxSteps       = 100
	MaxStepObjects = 20_000
)

// builtIn is the value of spec.managedBy that means the built-in controller.
const builtIn = "jobset-apiserver.io/sequentialjob-controller"

var updateStrategies = []batch.SequentialJobUpdateStrategyType{batch.UpdateContinue, batch.UpdateRestart, batch.UpdateForbid}

// Options are what the validation of steps that are JobSets needs to know of JobSets.
type Options struct {
	// Gates are the states of the gates of JobSets.
	Gates gates.Gates
	// Default fills in what the server fills in when a JobSet is created.
	Default func(*jobset.JobSetSpec)
}

// ValidateSequentialJobCreate checks a new SequentialJob, after defaulting. Lists that are too long are reported alone.
func ValidateSequentialJobCreate(sj *batch.SequentialJob, opts Options) field.ErrorList {
	if errs := stepSizes(&sj.Spec).Grown(func() *generic.Sizes { return &generic.Sizes{} }); len(errs) > 0 {
		return errs
	}
	errs := apivalidation.ValidateObjectMeta(&sj.ObjectMeta, true, sequenceName, field.NewPath("metadata"))
	return append(errs, validateSequence(sj, opts)...)
}

// ValidateSequentialJobUpdate checks a change of the spec. The caller has checked the change of the metadata. Lists that are too
// long, and longer than in the stored object, are reported alone.
func ValidateSequentialJobUpdate(next, prev *batch.SequentialJob, opts Options) field.ErrorList {
	if errs := stepSizes(&next.Spec).Grown(func() *generic.Sizes { return stepSizes(&prev.Spec) }); len(errs) > 0 {
		return errs
	}
	errs := validateSequenceTransition(next, prev)
	return append(errs, generic.Introduced(validateSequence(next, opts), validateSequence(prev, opts))...)
}

// stepSizes measures a spec. It is cheap whatever the spec holds, so that it comes before every other check.
func stepSizes(spec *batch.SequentialJobSpec) *generic.Sizes {
	s, path := &generic.Sizes{}, field.NewPath("spec")
	s.List(path.Child("containers"), len(spec.Containers), MaxSteps)
	s.List(path.Child("steps"), len(spec.Steps), MaxSteps)
	s.Lists(path, reflect.ValueOf(spec))
	s.Sum(path, generic.Objects(reflect.ValueOf(spec).Elem()), MaxStepObjects,
		"must have at most %d objects in all of its lists together, such as steps, variables and volumes; it has %d")
	return s
}

// sequenceName checks the name of a sequence for the metadata.
func sequenceName(name string, prefix bool) []string {
	if len(apivalidation.NameIsDNSSubdomain(name, prefix)) > 0 {
		return []string{"must consist of lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"}
	}
	return nil
}

// validateSequence checks a spec on its own, with the names that the name of the sequence leads to.
func validateSequence(sj *batch.SequentialJob, opts Options) field.ErrorList {
	path, spec := field.NewPath("spec"), &sj.Spec
	steps := stepsOf(spec, path)
	errs := validateWhichSteps(spec, path)
	errs = append(errs, validateStepNames(steps)...)
	errs = append(errs, validateContainers(spec, steps, ManagedByOther(spec))...)
	for i := range steps {
		errs = append(errs, validateStep(sj, &steps[i], opts)...)
	}
	errs = append(errs, validateChildNames(sj, steps)...)
	errs = append(errs, validateLimits(spec, path)...)
	errs = append(errs, generic.ValidateManagedBy(spec.ManagedBy, path.Child("managedBy"))...)
	if strategy := spec.UpdateStrategy; strategy != nil && !slices.Contains(updateStrategies, strategy.Type) {
		errs = append(errs, field.NotSupported(path.Child("updateStrategy", "type"), strategy.Type, updateStrategies))
	}
	return errs
}

// ManagedByOther returns whether another controller makes something of the sequence: maybe not the Jobs that it describes.
func ManagedByOther(spec *batch.SequentialJobSpec) bool {
	return spec.ManagedBy != nil && *spec.ManagedBy != builtIn
}

// validateWhichSteps checks that there are steps, in one of the two forms.
func validateWhichSteps(spec *batch.SequentialJobSpec, path *field.Path) field.ErrorList {
	switch {
	case len(spec.Containers) > 0 && len(spec.Steps) > 0:
		return field.ErrorList{field.Forbidden(path.Child("steps"), "must not be set together with containers: make the containers steps, too")}
	case len(spec.Containers) == 0 && len(spec.Steps) == 0:
		return field.ErrorList{field.Required(path.Child("containers"), "at least one container must be specified, or else steps")}
	}
	return nil
}

// validateStepNames checks that names of steps are unique labels.
func validateStepNames(steps []step) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]struct{}{}
	for i := range steps {
		name, path := steps[i].name, steps[i].path.Child("name")
		if name == "" {
			errs = append(errs, field.Required(path, "must be set: it identifies the step"))
			continue
		}
		if len(validation.IsDNS1123Label(name)) > 0 {
			errs = append(errs, field.Invalid(path, name, "must have at most 63 lower-case letters, digits and '-', beginning and ending with a "+
				"letter or digit"))
		}
		if _, dup := seen[name]; dup {
			errs = append(errs, podtemplate.Duplicate(path, name))
		}
		seen[name] = struct{}{}
	}
	return errs
}

// validateLimits checks the numbers of a spec.
func validateLimits(spec *batch.SequentialJobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := spec.BackoffLimit; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("backoffLimit"), *n, "must be 0 or more; leave it out for the default of Jobs"))
	}
	if n := spec.ActiveDeadlineSeconds; n != nil && *n < 1 {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *n, "must be 1 or more; leave it out for no limit"))
	}
	if n := spec.TTLSecondsAfterFinished; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("ttlSecondsAfterFinished"), *n, "must be 0 or more; leave it out to keep the sequence"))
	}
	return errs
}
