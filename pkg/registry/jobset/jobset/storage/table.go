// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
)

// columns are upstream's, in their order, and after them ours, which clients show with -o wide only.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "name of the JobSet, unique in its namespace"},
	{Name: "TerminalState", Type: "string", Description: "final state"},
	{Name: "Restarts", Type: "string", Description: "number of restarts"},
	{Name: "Completed", Type: "string"},
	{Name: "Suspended", Type: "string", Description: "suspended flag"},
	{Name: "Age", Type: "date", Description: "creation time"},
	{Name: "Phase", Type: "string", Priority: 1, Description: "summary of the state: Pending, Suspended, Starting, Running, Restarting, " +
		"Completed, Failed or Terminating"},
	{Name: "Ready", Type: "string", Priority: 1, Description: "Jobs that are ready or have succeeded, of all Jobs"},
	{Name: "Attempt", Type: "string", Priority: 1, Description: "current attempt, of the attempts that the set can reach with the restarts " +
		"that are left"},
	{Name: "Reason", Type: "string", Priority: 1, Description: "why the set is in the phase, in one word; blank while it runs"},
	{Name: "Duration", Type: "string", Priority: 1, Description: "time since the set was created or last resumed, until it finished"},
}

// newTable prints JobSets. now is the clock of running durations.
func newTable(now func() time.Time) rest.TableConvertor {
	return table.Convertor[*jobset.JobSet]{Columns: columns, Row: func(js *jobset.JobSet, age string) []any { return row(js, age, now()) }}
}

// row returns the cells of the columns. A value that is missing is a nil cell, which kubectl leaves blank.
func row(js *jobset.JobSet, age string, now time.Time) []any {
	s := summarize(js, now)
	cells := []any{js.Name, table.Text(js.Status.TerminalState), nil, nil, nil, age, s.phase, s.ready, s.attempt, table.Text(s.reason),
		table.Text(s.duration)}
	if !equality.Semantic.DeepEqual(js.Status, jobset.JobSetStatus{}) {
		cells[2] = strconv.Itoa(int(js.Status.Restarts))
	}
	if completed := meta.FindStatusCondition(js.Status.Conditions, jobset.ConditionCompleted); completed != nil {
		cells[3] = string(completed.Status)
	}
	if js.Spec.Suspend != nil {
		cells[4] = strconv.FormatBool(*js.Spec.Suspend)
	}
	return cells
}
