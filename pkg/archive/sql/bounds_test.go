// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

func testTooLarge(t *testing.T, s *Store) {
	large := newRun(1, withDetails(`"`+strings.Repeat("x", maxRecord)+`"`))
	if err := s.Put(t.Context(), []archive.Run{large}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("want ErrTooLarge, got %v", err)
	}
	put(t, s, newRun(1, withDetails(`"`+strings.Repeat("x", maxRecord-100)+`"`)))
}

func testManyLabels(t *testing.T, s *Store) {
	run := newRun(1, func(run *archive.Run) {
		for n := range maxLabels + 10 {
			run.Labels[fmt.Sprintf("label-%04d", n)] = "x"
		}
	})
	put(t, s, run)
	got, err := s.Get(t.Context(), run.Namespace, run.Name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run.Labels, got.Labels); diff != "" {
		t.Errorf("other labels (-want +got):\n%s", diff)
	}
	for n, want := range map[int][]string{0: {"train-1"}, maxLabels - 1: {"train-1"}, maxLabels: {}} {
		query := api.Query{Labels: labels.SelectorFromSet(labels.Set{fmt.Sprintf("label-%04d", n): "x"})}
		if diff := cmp.Diff(want, listed(t, s, query)); diff != "" {
			t.Errorf("label %d finds other runs (-want +got):\n%s", n, diff)
		}
	}
}

func testLargestPage(t *testing.T, s *Store) {
	put(t, s, runsFrom(1, api.MaxLimit+1)...)
	for limit, want := range map[int]int{0: api.MaxLimit, api.MaxLimit: api.MaxLimit, 2 * api.MaxLimit: api.MaxLimit, 1: 1} {
		page, err := s.List(t.Context(), api.Query{Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Runs) != want || page.Continue == "" {
			t.Errorf("limit %d: want %d runs and a token, got %d, %q", limit, want, len(page.Runs), page.Continue)
		}
	}
	page, err := s.List(t.Context(), api.Query{Limit: 7, Fields: []api.Requirement{{Field: api.FieldEndedBefore, Value: "2026-03-01T00:00:08Z"}}})
	if err != nil || len(page.Runs) != 7 || page.Continue != "" {
		t.Errorf("want no token after the last 7 runs, got %+v, %v", page, err)
	}
}

func testSkewedClocks(t *testing.T, s *Store) {
	skewed := newRun(100, func(run *archive.Run) { run.BeginTime = at(200) })
	put(t, s, skewed)
	for field, want := range map[api.Field][]string{
		api.FieldBeganBefore: {"train-100"}, api.FieldBeganAfter: {}, api.FieldEndedBefore: {"train-100"}, api.FieldEndedAfter: {},
	} {
		got := listed(t, s, api.Query{Fields: []api.Requirement{{Field: field, Value: "2026-03-01T00:02:30Z"}}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s finds other runs (-want +got):\n%s", field, diff)
		}
	}
	got, err := s.Get(t.Context(), skewed.Namespace, skewed.Name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(skewed, *got); diff != "" {
		t.Errorf("Get returned another run (-want +got):\n%s", diff)
	}
}

func testClosed(t *testing.T, s *Store) {
	put(t, s, newRun(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), runsFrom(2, 2)); err == nil {
		t.Error("want an error from Put")
	}
	if _, err := s.List(t.Context(), api.Query{}); err == nil {
		t.Error("want an error from List")
	}
	if _, err := s.Get(t.Context(), "team", newRun(1).Name); err == nil || errors.Is(err, api.ErrNotFound) {
		t.Errorf("want an error from Get that is not ErrNotFound, got %v", err)
	}
}
