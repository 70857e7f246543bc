// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
)

func TestRows(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(now.Add(-d)) }
	full := api.Run{
		ObjectMeta: metav1.ObjectMeta{Name: "train-0123456789ab"}, Object: api.RunObject{Kind: "JobSet", Name: "train"}, State: api.RunFailed,
		Reason: "FailedJobs", User: "alice", Queue: "gpu", Attempts: 3, BeginTime: ago(3 * time.Hour), EndTime: ago(time.Hour),
		Failures: []api.RunFailure{{Reason: "OOMKilled", Node: "n1"}, {Reason: "NodeLost", Node: "n2"}},
	}
	bare := api.Run{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Object: api.RunObject{Kind: "JobSet", Name: "x"}, State: api.RunDeleted}
	ahead := bare
	ahead.BeginTime, ahead.EndTime = ago(-time.Hour), ago(-2*time.Hour)
	backwards := bare
	backwards.BeginTime, backwards.EndTime = ago(time.Minute), ago(time.Hour)
	for name, tc := range map[string]struct {
		run  api.Run
		want []any
	}{
		"all cells": {full, []any{
			"train-0123456789ab", "JobSet", "train", "Failed", "FailedJobs", "alice", int64(3), "120m", "60m", "gpu", "NodeLost", "n2", "3h",
		}},
		"what is not known is blank":      {bare, []any{"x", "JobSet", "x", "Deleted", nil, nil, int64(0), nil, nil, nil, nil, nil, nil}},
		"times of the future":             {ahead, []any{"x", "JobSet", "x", "Deleted", nil, nil, int64(0), "60m", "0s", nil, nil, nil, "0s"}},
		"an end that is before the begin": {backwards, []any{"x", "JobSet", "x", "Deleted", nil, nil, int64(0), "0s", "60m", nil, nil, nil, "60s"}},
	} {
		table, err := NewTable(func() time.Time { return now }).ConvertToTable(t.Context(), &api.RunList{Items: []api.Run{tc.run}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, table.Rows[0].Cells); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestColumns(t *testing.T) {
	shown, wide := []string{}, []string{}
	for _, column := range columns {
		if column.Description == "" {
			t.Errorf("column %s has no description", column.Name)
		}
		if column.Priority == 0 {
			shown = append(shown, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
	}
	want := [][]string{{"Name", "Kind", "Object", "State", "Reason", "User", "Attempts", "Duration", "Ended"}, {"Queue", "Cause", "Node", "Began"}}
	if diff := cmp.Diff(want, [][]string{shown, wide}); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if cells := row(&api.Run{}, time.Time{}); len(cells) != len(columns) {
		t.Errorf("a row has %d cells for %d columns", len(cells), len(columns))
	}
	list := &api.RunList{ListMeta: metav1.ListMeta{Continue: "token"}}
	for object, want := range map[runtime.Object]string{list: "token", &api.Run{}: ""} {
		if table, err := NewTable(time.Now).ConvertToTable(t.Context(), object, nil); err != nil || table.Continue != want {
			t.Errorf("the table of a %T continues at %q, want %q: %v", object, table.Continue, want, err)
		}
	}
}
