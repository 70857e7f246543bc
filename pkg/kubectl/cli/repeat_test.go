// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRepeat(t *testing.T) {
	broken := errors.New("broken")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no"))
	type outcome struct {
		Calls int
		Err   string
	}
	for name, tc := range map[string]struct {
		watch func(call int, stop func()) (bool, error)
		want  outcome
	}{
		"the context ends": {func(call int, stop func()) (bool, error) {
			if call == 3 {
				stop()
			}
			return false, broken
		}, outcome{3, ""}},
		"failures in a row": {func(int, func()) (bool, error) { return false, broken }, outcome{mostFailures, "watching sets: broken"}},
		"failures with progress between": {func(call int, stop func()) (bool, error) {
			if call == 2*mostFailures {
				stop()
			}
			return call%2 == 0, broken
		}, outcome{2 * mostFailures, ""}},
		"access is denied":   {func(int, func()) (bool, error) { return true, forbidden }, outcome{1, "events is forbidden: no"}},
		"the output is gone": {func(int, func()) (bool, error) { return true, OutputError{io.ErrClosedPipe} }, outcome{1, io.ErrClosedPipe.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			got := outcome{}
			err := repeat(ctx, "sets", time.Microsecond, func(context.Context) (bool, error) {
				got.Calls++
				return tc.watch(got.Calls, stop)
			})
			if err != nil {
				got.Err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRowsThatComeLate(t *testing.T) {
	rows := Rows{Columns: []Column{{Title: "NAME"}, {Title: "STATE"}}}
	terminal := Terminal{ASCII: true}
	var got []string
	for _, row := range [][]string{{"train", "Running"}, {"a-longer-name", "Failed"}, {"x", "y"}} {
		got = append(got, rows.Lines(terminal, [][]string{row})...)
	}
	want := []string{"NAME   STATE", "train  Running", "a-longer-name  Failed", "x              y"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
