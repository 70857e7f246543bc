// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// The keys of the tables begin with the row that the case covers: "3.2" for the schema-level checks, "3.4-5c" and "3.5-4"
// for upstream's rules, by number, "own" for rules that upstream does not have, "ratchet" for stored errors.

// refusal is what a user sees of an error: where, what kind, and what to do.
type refusal struct {
	Field  string
	Type   field.ErrorType
	Detail string
}

func refusals(errs field.ErrorList) []refusal {
	var out []refusal
	for _, err := range errs {
		out = append(out, refusal{Field: err.Field, Type: err.Type, Detail: err.Detail})
	}
	return out
}

func only(path string, kind field.ErrorType, detail string) []refusal {
	return []refusal{{Field: path, Type: kind, Detail: detail}}
}

const (
	invalid      = field.ErrorTypeInvalid
	required     = field.ErrorTypeRequired
	forbidden    = field.ErrorTypeForbidden
	notSupported = field.ErrorTypeNotSupported
	duplicate    = field.ErrorTypeDuplicate
	tooMany      = field.ErrorTypeTooMany
	tooLong      = field.ErrorTypeTooLong
)

// train is a valid set: one launcher, and two Jobs of four workers.
func train(change ...func(*jobset.JobSet)) *jobset.JobSet {
	js := builders.Hub("train", builders.WithHubJobs("launcher", 1, 1), builders.WithHubJobs("workers", 2, 4))
	for _, f := range change {
		f(js)
	}
	return js
}

// podFailurePolicy gives a Job the rules, and the restart policy that they need.
func podFailurePolicy(rules ...batchv1.PodFailurePolicyRule) func(*batchv1.JobSpec) {
	return func(j *batchv1.JobSpec) {
		j.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		j.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: rules}
	}
}
