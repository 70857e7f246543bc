// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// columns are upstream's, in their order, and after them our columns, which clients show with -o wide only.
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

// NewTable prints JobSets. now is the clock of running durations.
func NewTable(now func() time.Time) rest.TableConvertor {
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

// summary is what the wide columns show.
type summary struct {
	phase, ready, attempt, reason, duration string
}

// summarize derives the wide columns from the object and the time.
func summarize(hub *jobset.JobSet, now time.Time) summary {
	js := actions.Versioned(hub)
	s := helper.Summarize(js)
	return summary{
		phase:    s.Phase,
		ready:    fmt.Sprintf("%d/%d", s.Jobs.Up, s.Jobs.Wanted),
		attempt:  fmt.Sprintf("%d/%d", s.Attempt, s.LastAttempt),
		reason:   s.Reason,
		duration: elapsed(js, now),
	}
}

// elapsed is the time that a set has run, or "" while it is suspended.
func elapsed(js *jobsetv1alpha2.JobSet, now time.Time) string {
	start := js.CreationTimestamp.Time
	if resumed := meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.JobSetSuspended); resumed != nil &&
		resumed.Status == metav1.ConditionFalse {
		start = resumed.LastTransitionTime.Time
	}
	if finished, c := helper.Finished(js); finished != "" {
		if c != nil {
			return table.Duration(c.LastTransitionTime.Sub(start))
		}
		return ""
	}
	if helper.Suspended(js) || start.IsZero() {
		return ""
	}
	return table.Duration(now.Sub(start))
}
