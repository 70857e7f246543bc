// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

func TestAvoidTime(t *testing.T) {
	const (
		path      = "metadata.annotations[jobset-apiserver.io/avoid-failed-nodes]"
		malformed = `must be a duration from 0s, for not at all, to 720h, such as "1h" or "90m"`
		outside   = `must be from 0s, for not at all, to 720h, such as "1h" or "90m"`
	)
	for value, want := range map[string]string{
		"0s": "", "0": "", "1h": "", "90m": "", "720h": "", "1h30m": "", "500ms": "",
		"": malformed, "1": malformed, "1d": malformed, "one hour": malformed, " 1h": malformed, "1h,2h": malformed, "9999999h": malformed,
		strings.Repeat("1h", 200_000): outside, "-1h": outside, "720h1ns": outside,
	} {
		t.Run(value[:min(len(value), 20)], func(t *testing.T) {
			js := train()
			js.Annotations = map[string]string{jobset.AvoidFailedNodesKey: value}
			var refused []refusal
			if want != "" {
				refused = []refusal{{path, invalid, want}}
			}
			if diff := cmp.Diff(refused, refusals(validation.ValidateJobSetUpdate(js, train(), gates.Gates{}))); diff != "" {
				t.Errorf("refusals of an update (-want +got):\n%s", diff)
			}
			if errs := validation.ValidateJobSetUpdate(js.DeepCopy(), js, gates.Gates{}); len(errs) > 0 {
				t.Errorf("a stored value is refused: %v", errs.ToAggregate())
			}
			if len(value) > 1000 {
				return // the size of all annotations is limited by itself
			}
			if diff := cmp.Diff(refused, refusals(validation.ValidateJobSetCreate(js, gates.Gates{}))); diff != "" {
				t.Errorf("refusals of a create (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAvoidedNodesOfAttempts(t *testing.T) {
	until := metav1.NewTime(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	prev, next := train(), train()
	next.Status.Attempts = history(1)
	next.Status.Attempts[0].AvoidedNodes = []jobset.AvoidedNode{
		{Name: "node-1", Attempt: 1, Until: until},
		{Name: "node-1", Attempt: 1, Until: until},
		{Reason: strings.Repeat("x", 257)},
		{Name: strings.Repeat("n", 254), Attempt: 1, Until: until},
	}
	p := "status.attempts[0].avoidedNodes"
	want := []refusal{
		{p + "[1]", field.ErrorTypeDuplicate, "must be unique in the list: remove or rename one of the two"},
		{p + "[2].name", required, "must be the name of the node"},
		{p + "[2].attempt", invalid, "must be 1 or more"},
		{p + "[2].until", required, "must be the time when pods may run on the node again"},
		{p + "[2].reason", field.ErrorTypeTooLong, "may not be more than 256 bytes"},
		{p + "[3].name", field.ErrorTypeTooLong, "may not be more than 253 bytes"},
	}
	if diff := cmp.Diff(want, refusals(validation.ValidateJobSetStatusUpdate(next, prev, gates.Gates{}))); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
	next.Status.Attempts[0].AvoidedNodes = make([]jobset.AvoidedNode, jobset.MaxAvoidedNodes+1)
	if errs := validation.ValidateJobSetStatusUpdate(next, prev, gates.Gates{}); len(errs) != 1 || !strings.Contains(errs[0].Error(), p) {
		t.Errorf("errors for too many nodes: %v", errs)
	}
}
