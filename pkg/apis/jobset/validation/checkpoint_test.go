// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

func TestCheckpointStep(t *testing.T) {
	const path, want = "metadata.annotations[jobset-apiserver.io/checkpoint-step]", "must be a decimal number from 0 to 9223372036854775807, the step of the last checkpoint"
	for value, step := range map[string]int64{
		"0": 0, "12000": 12000, "9223372036854775807": 1<<63 - 1,
		"": -1, "-1": -1, "+1": -1, "007": -1, "1e3": -1, "1.5": -1, "1_000": -1, " 1": -1, "9223372036854775808": -1, "step 7": -1, strings.Repeat("1", 300): -1,
	} {
		t.Run(value, func(t *testing.T) {
			js := train()
			js.Annotations = map[string]string{jobset.CheckpointStepKey: value}
			var refused []refusal
			if step < 0 {
				refused = []refusal{{path, invalid, want}}
			}
			if got, ok := validation.CheckpointStep(js); ok != (step >= 0) || ok && got != step {
				t.Errorf("step %d, %t; want %d", got, ok, step)
			}
			if diff := cmp.Diff(refused, refusals(validation.ValidateJobSetCreate(js, gates.Gates{}))); diff != "" {
				t.Errorf("refusals of a create (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(refused, refusals(validation.ValidateJobSetUpdate(js, train(), gates.Gates{}))); diff != "" {
				t.Errorf("refusals of an update (-want +got):\n%s", diff)
			}
			if errs := validation.ValidateJobSetUpdate(js.DeepCopy(), js, gates.Gates{}); len(errs) > 0 {
				t.Errorf("a stored value is refused: %v", errs.ToAggregate())
			}
		})
	}
}

func TestCheckpointsOfAttempts(t *testing.T) {
	prev, next := train(), train()
	next.Status.Attempts = history(1)
	next.Status.Attempts[0].Checkpoint = &jobset.Checkpoint{Step: -1, GoodMilliseconds: -2}
	want := []refusal{
		{"status.attempts[0].checkpoint.step", invalid, "must be 0 or more"},
		{"status.attempts[0].checkpoint.time", required, "must be the time of the report"},
		{"status.attempts[0].checkpoint.goodMilliseconds", invalid, "must be 0 or more"},
	}
	if diff := cmp.Diff(want, refusals(validation.ValidateJobSetStatusUpdate(next, prev, gates.Gates{}))); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}
