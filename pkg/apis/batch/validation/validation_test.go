// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
)

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

func TestRestart(t *testing.T) {
	const (
		invalid      = field.ErrorTypeInvalid
		required     = field.ErrorTypeRequired
		forbidden    = field.ErrorTypeForbidden
		notSupported = field.ErrorTypeNotSupported
	)
	cases := map[string]struct {
		spec batch.JobSetRestartSpec
		want []refusal
	}{
		"the whole set":        {spec: batch.JobSetRestartSpec{Scope: "JobSet", CountTowardsMaxRestarts: true}},
		"a replicatedJob":      {spec: batch.JobSetRestartSpec{Scope: "ReplicatedJob", ReplicatedJob: "a"}},
		"the first Job":        {spec: batch.JobSetRestartSpec{Scope: "Job", ReplicatedJob: "a", JobIndex: ptr.To[int32](0)}},
		"no scope":             {want: only("spec.scope", notSupported, `supported values: "JobSet", "ReplicatedJob", "Job"`)},
		"another scope":        {spec: batch.JobSetRestartSpec{Scope: "Pod"}, want: only("spec.scope", notSupported, `supported values: "JobSet", "ReplicatedJob", "Job"`)},
		"scope in lower case":  {spec: batch.JobSetRestartSpec{Scope: "job"}, want: only("spec.scope", notSupported, `supported values: "JobSet", "ReplicatedJob", "Job"`)},
		"any reason and state": {spec: batch.JobSetRestartSpec{Scope: "JobSet", Reason: "stuck", Preconditions: &batch.ActionPreconditions{Attempt: ptr.To[int32](0)}}},
		"the whole set, with more": {
			spec: batch.JobSetRestartSpec{Scope: "JobSet", ReplicatedJob: "a", JobIndex: ptr.To[int32](1)},
			want: []refusal{
				{"spec.replicatedJob", forbidden, "must not be set when the scope is JobSet: leave it out, or set the scope to ReplicatedJob"},
				{"spec.jobIndex", forbidden, "must not be set when the scope is JobSet: leave it out, or set the scope to Job"},
			},
		},
		"no replicatedJob": {
			spec: batch.JobSetRestartSpec{Scope: "ReplicatedJob"},
			want: only("spec.replicatedJob", required, "must name a replicatedJob when the scope is ReplicatedJob"),
		},
		"a replicatedJob, with an index": {
			spec: batch.JobSetRestartSpec{Scope: "ReplicatedJob", ReplicatedJob: "a", JobIndex: ptr.To[int32](1)},
			want: only("spec.jobIndex", forbidden, "must not be set when the scope is ReplicatedJob: leave it out, or set the scope to Job"),
		},
		"a Job of nothing": {
			spec: batch.JobSetRestartSpec{Scope: "Job"},
			want: []refusal{
				{"spec.replicatedJob", required, "must name a replicatedJob when the scope is Job"},
				{"spec.jobIndex", required, "must be the index of a Job when the scope is Job"},
			},
		},
		"a negative index": {
			spec: batch.JobSetRestartSpec{Scope: "Job", ReplicatedJob: "a", JobIndex: ptr.To[int32](-1)},
			want: only("spec.jobIndex", invalid, "must be 0 or more"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := refusals(validation.ValidateRestart(&tc.spec))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCommonFields checks what every request has.
func TestCommonFields(t *testing.T) {
	kinds := map[string]func(batch.JobSetActionSpec) field.ErrorList{
		"restart": func(s batch.JobSetActionSpec) field.ErrorList {
			return validation.ValidateRestart(&batch.JobSetRestartSpec{
				Scope: batch.RestartScopeJobSet, Reason: s.Reason, Preconditions: s.Preconditions,
			})
		},
		"suspend, resume and cancel": func(s batch.JobSetActionSpec) field.ErrorList { return validation.ValidateAction(&s) },
		"retry": func(s batch.JobSetActionSpec) field.ErrorList {
			return validation.ValidateRetry(&batch.JobSetRetrySpec{Reason: s.Reason, Preconditions: s.Preconditions})
		},
	}
	cases := map[string]struct {
		spec batch.JobSetActionSpec
		want []refusal
	}{
		"nothing":                      {},
		"no attempts yet":              {spec: batch.JobSetActionSpec{Preconditions: &batch.ActionPreconditions{Attempt: ptr.To[int32](0)}}},
		"a reason of 1024 characters":  {spec: batch.JobSetActionSpec{Reason: strings.Repeat("ß", 1024)}},
		"a reason that moves a cursor": {spec: batch.JobSetActionSpec{Reason: "é\x1b[2J"}, want: only("spec.reason", field.ErrorTypeInvalid, "must not contain control characters: character 2 is U+001B")},
		"a reason of two lines":        {spec: batch.JobSetActionSpec{Reason: "a\nb"}, want: only("spec.reason", field.ErrorTypeInvalid, "must not contain control characters: character 2 is U+000A")},
		"a reason that is turned":      {spec: batch.JobSetActionSpec{Reason: "a\u202Eb"}, want: only("spec.reason", field.ErrorTypeInvalid, "must not contain control characters: character 2 is U+202E")},
		"a reason of 1025 characters":  {spec: batch.JobSetActionSpec{Reason: strings.Repeat("ß", 1025)}, want: only("spec.reason", field.ErrorTypeTooLong, "may not be more than 1024 characters")},
		"preconditions without values": {spec: batch.JobSetActionSpec{Preconditions: &batch.ActionPreconditions{}}},
		"a negative attempt": {
			spec: batch.JobSetActionSpec{Preconditions: &batch.ActionPreconditions{Attempt: ptr.To[int32](-1)}},
			want: only("spec.preconditions.attempt", field.ErrorTypeInvalid, "must be 0 or more"),
		},
	}
	for kind, validate := range kinds {
		for name, tc := range cases {
			t.Run(kind+": "+name, func(t *testing.T) {
				if diff := cmp.Diff(tc.want, refusals(validate(tc.spec))); diff != "" {
					t.Errorf("refusals (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestRetryRestarts(t *testing.T) {
	cases := map[string]struct {
		maxRestarts int32
		want        []refusal
	}{
		"none":     {},
		"some":     {maxRestarts: 3},
		"negative": {maxRestarts: -1, want: only("spec.maxRestarts", field.ErrorTypeInvalid, "must be 0 or more")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := &batch.JobSetRetrySpec{MaxRestarts: tc.maxRestarts}
			if diff := cmp.Diff(tc.want, refusals(validation.ValidateRetry(request))); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}
