// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// columns are upstream's, in their order, and after them ours, which clients show with -o wide only.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "name of the JobSet, unique in its namespace"},
	{Name: "TerminalState", Type: "string", Description: "final state"},
	{Name: "Restarts", Type: "string", Description: "number of restarts"},
	{Name: "Completed", Type: "string"},
	{Name: "Suspended", Type: "string", Description: "suspended flag"},
	{Name: "Age", Type: "date", Description: "creation time"},
	{Name: "Phase", Type: "string", Priority: 1, Description: "summary of the state: Pending, Suspended, Starting, Running, Restarting, Completed, Failed or Terminating"},
	{Name: "Ready", Type: "string", Priority: 1, Description: "Jobs that are ready or have succeeded, of all Jobs"},
	{Name: "Attempt", Type: "string", Priority: 1, Description: "current attempt, of the attempts that the set can reach with the restarts that are left"},
	{Name: "Reason", Type: "string", Priority: 1, Description: "why the set is in the phase, in one word; blank while it runs"},
	{Name: "Duration", Type: "string", Priority: 1, Description: "time since the set was created or last resumed, until it finished"},
}

// tableConvertor prints JobSets. now is the clock of running durations.
type tableConvertor struct {
	now func() time.Time
}

var _ rest.TableConvertor = tableConvertor{}

// ConvertToTable prints one JobSet or a list.
func (c tableConvertor) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if list, err := meta.ListAccessor(object); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
	} else if one, err := meta.CommonAccessor(object); err == nil {
		table.ResourceVersion = one.GetResourceVersion()
	}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = columns
	}
	var err error
	table.Rows, err = metatable.MetaToTableRow(object, func(obj runtime.Object, _ metav1.Object, _, age string) ([]any, error) {
		js, ok := obj.(*jobset.JobSet)
		if !ok {
			return nil, fmt.Errorf("printing JobSets: got a %T", obj)
		}
		return row(js, age, c.now()), nil
	})
	if err != nil {
		return nil, err
	}
	return table, nil
}

// row returns the cells of the columns. A value that is missing is a nil cell, which kubectl leaves blank.
func row(js *jobset.JobSet, age string, now time.Time) []any {
	s := summarize(js, now)
	cells := []any{js.Name, text(js.Status.TerminalState), nil, nil, nil, age, s.phase, s.ready, s.attempt, text(s.reason), text(s.duration)}
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

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func humanDuration(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }
