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

// TestSequentialJobActions checks what every request has.
func TestSequentialJobActions(t *testing.T) {
	kinds := map[string]func(batch.SequentialJobActionSpec) field.ErrorList{
		"restart, suspend, resume and cancel": func(s batch.SequentialJobActionSpec) field.ErrorList {
			return validation.ValidateSequenceAction(&s)
		},
		"retry": func(s batch.SequentialJobActionSpec) field.ErrorList {
			return validation.ValidateSequentialJobRetry(&batch.SequentialJobRetrySpec{
				FromStep: "train", Reason: s.Reason, Preconditions: s.Preconditions,
			})
		},
	}
	cases := map[string]struct {
		spec batch.SequentialJobActionSpec
		want []refusal
	}{
		"nothing": {},
		"everything": {spec: batch.SequentialJobActionSpec{Reason: strings.Repeat("ß", 1024), Preconditions: &batch.SequentialJobPreconditions{
			Step: strings.Repeat("a", 63), Attempt: ptr.To[int32](0),
		}}},
		"a reason that turns around": {spec: batch.SequentialJobActionSpec{Reason: "a\u202eb"},
			want: only("spec.reason", field.ErrorTypeInvalid, "must not contain control characters: character 2 is U+202E")},
		"a long reason": {spec: batch.SequentialJobActionSpec{Reason: strings.Repeat("ß", 1025)},
			want: only("spec.reason", field.ErrorTypeTooLong, "may not be more than 1024 characters")},
		"a negative attempt": {spec: batch.SequentialJobActionSpec{Preconditions: &batch.SequentialJobPreconditions{Attempt: ptr.To[int32](-1)}},
			want: only("spec.preconditions.attempt", field.ErrorTypeInvalid, "must be 0 or more")},
		"a name that no step has": {spec: batch.SequentialJobActionSpec{Preconditions: &batch.SequentialJobPreconditions{Step: strings.Repeat("a", 64)}},
			want: only("spec.preconditions.step", field.ErrorTypeTooLong, "may not be more than 63 bytes")},
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
	long := &batch.SequentialJobRetrySpec{FromStep: strings.Repeat("a", 64)}
	want := only("spec.fromStep", field.ErrorTypeTooLong, "may not be more than 63 bytes")
	if diff := cmp.Diff(want, refusals(validation.ValidateSequentialJobRetry(long))); diff != "" {
		t.Errorf("a long name of a step (-want +got):\n%s", diff)
	}
}
