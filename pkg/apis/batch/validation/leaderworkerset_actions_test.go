// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
)

// TestLeaderWorkerSetActions checks what every request has.
func TestLeaderWorkerSetActions(t *testing.T) {
	kinds := map[string]func(batch.LeaderWorkerSetActionSpec) field.ErrorList{
		"restart": func(s batch.LeaderWorkerSetActionSpec) field.ErrorList {
			return validation.ValidateLeaderWorkerSetRestart(&batch.LeaderWorkerSetRestartSpec{
				Reason: s.Reason, Preconditions: s.Preconditions, Group: ptr.To[int32](0),
			})
		},
		"rollback": func(s batch.LeaderWorkerSetActionSpec) field.ErrorList {
			return validation.ValidateLeaderWorkerSetRollback(&batch.LeaderWorkerSetRollbackSpec{
				Reason: s.Reason, Preconditions: s.Preconditions, ToRevision: 3,
			})
		},
		"pause and resume": func(s batch.LeaderWorkerSetActionSpec) field.ErrorList {
			return validation.ValidateLeaderWorkerSetAction(&s)
		},
	}
	long := types.UID(strings.Repeat("a", 129))
	cases := map[string]struct {
		spec batch.LeaderWorkerSetActionSpec
		want []refusal
	}{
		"nothing": {},
		"everything": {spec: batch.LeaderWorkerSetActionSpec{Reason: strings.Repeat("ß", 1024), Preconditions: &batch.LeaderWorkerSetPreconditions{
			UID: ptr.To(types.UID("a")), Generation: ptr.To[int64](0),
		}}},
		"a reason that moves a cursor": {spec: batch.LeaderWorkerSetActionSpec{Reason: "\x1b[2J"},
			want: only("spec.reason", field.ErrorTypeInvalid, "must not contain control characters: character 1 is U+001B")},
		"a long reason": {spec: batch.LeaderWorkerSetActionSpec{Reason: strings.Repeat("ß", 1025)},
			want: only("spec.reason", field.ErrorTypeTooLong, "may not be more than 1024 characters")},
		"a long UID": {spec: batch.LeaderWorkerSetActionSpec{Preconditions: &batch.LeaderWorkerSetPreconditions{UID: &long}},
			want: only("spec.preconditions.uid", field.ErrorTypeTooLong, "may not be more than 128 bytes")},
		"a negative generation": {spec: batch.LeaderWorkerSetActionSpec{Preconditions: &batch.LeaderWorkerSetPreconditions{Generation: ptr.To[int64](-1)}},
			want: only("spec.preconditions.generation", field.ErrorTypeInvalid, "must be 0 or more")},
	}
	for kind, validate := range kinds {
		for name, tc := range cases {
			t.Run(kind+": "+name, func(t *testing.T) {
				if diff := cmp.Diff(tc.want, refusals(validate(tc.spec))); diff != "" {
					t.Errorf("refusals (-want +got):\n%s", diff)
				}
			})
		}
		restarts := batch.LeaderWorkerSetActionSpec{Preconditions: &batch.LeaderWorkerSetPreconditions{Restarts: ptr.To[int32](2)}}
		want := only("spec.preconditions.restarts", field.ErrorTypeForbidden, "may be set only in requests to restart a group: leave it out")
		if kind == "restart" {
			want = nil
		}
		if diff := cmp.Diff(want, refusals(validate(restarts))); diff != "" {
			t.Errorf("%s with a number of restarts (-want +got):\n%s", kind, diff)
		}
	}
}

func TestLeaderWorkerSetTargets(t *testing.T) {
	negative := &batch.LeaderWorkerSetPreconditions{Restarts: ptr.To[int32](-1)}
	for name, tc := range map[string]struct {
		errs field.ErrorList
		want []refusal
	}{
		"a negative group": {validation.ValidateLeaderWorkerSetRestart(&batch.LeaderWorkerSetRestartSpec{Group: ptr.To[int32](-1)}),
			only("spec.group", field.ErrorTypeInvalid, "must be 0 or more")},
		"restarts of all groups": {validation.ValidateLeaderWorkerSetRestart(&batch.LeaderWorkerSetRestartSpec{Preconditions: negative}),
			only("spec.preconditions.restarts", field.ErrorTypeForbidden, "may be set only with spec.group, whose restarts it is about: leave it out, or set spec.group")},
		"a negative number of restarts": {validation.ValidateLeaderWorkerSetRestart(&batch.LeaderWorkerSetRestartSpec{Group: ptr.To[int32](1), Preconditions: negative}), only("spec.preconditions.restarts", field.ErrorTypeInvalid, "must be 0 or more")},
		"a negative revision": {validation.ValidateLeaderWorkerSetRollback(&batch.LeaderWorkerSetRollbackSpec{ToRevision: -1}),
			only("spec.toRevision", field.ErrorTypeInvalid, "must be 0 or more")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, refusals(tc.errs)); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}
