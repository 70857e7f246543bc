// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
)

// columns are what kubectl shows. It shows those with a priority with -o wide only.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "name of the Run, unique in its namespace"},
	{Name: "Kind", Type: "string", Description: "kind of the object that ran"},
	{Name: "Object", Type: "string", Description: "name of the object that ran"},
	{Name: "State", Type: "string", Description: "how the run ended: Completed, Failed, Cancelled or Deleted"},
	{Name: "Reason", Type: "string", Description: "why the run ended in the state, in one word"},
	{Name: "User", Type: "string", Description: "name of the user who created the object"},
	{Name: "Attempts", Type: "integer", Description: "number of attempts"},
	{Name: "Duration", Type: "string", Description: "time from the begin to the end of the run"},
	{Name: "Ended", Type: "string", Description: "time since the end of the run"},
	{Name: "Queue", Type: "string", Priority: 1, Description: "name of the queue that admitted the object"},
	{Name: "Cause", Type: "string", Priority: 1, Description: "first cause of the last attempt that failed, in one word"},
	{Name: "Node", Type: "string", Priority: 1, Description: "node on which the last attempt that failed did so first"},
	{Name: "Began", Type: "string", Priority: 1, Description: "time since the begin of the run"},
}

// NewTable prints Runs. now is the clock of ages.
func NewTable(now func() time.Time) rest.TableConvertor {
	return table.Convertor[*api.Run]{Columns: columns, Row: func(run *api.Run, _ string) []any { return row(run, now()) }}
}

// row returns the cells of the columns. A value that is missing is a nil cell, which kubectl leaves blank.
func row(run *api.Run, now time.Time) []any {
	var last api.RunFailure
	if n := len(run.Failures); n > 0 {
		last = run.Failures[n-1]
	}
	return []any{
		run.Name, run.Object.Kind, run.Object.Name, string(run.State), table.Text(run.Reason), table.Text(run.User), int64(run.Attempts),
		between(run.BeginTime, run.EndTime.Time), between(run.EndTime, now),
		table.Text(run.Queue), table.Text(last.Reason), table.Text(last.Node), between(run.BeginTime, now),
	}
}

// between prints the time between two times. Clocks that differ do not make it negative.
func between(from metav1.MicroTime, to time.Time) any {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	return table.Duration(to.Sub(from.Time))
}
