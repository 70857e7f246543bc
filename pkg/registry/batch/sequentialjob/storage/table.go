// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
)

// columns are the columns of kubectl get (docs/reference/batch.md#columns). Clients show those of priority 1 with -o wide only.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "name of the SequentialJob, unique in its namespace"},
	{Name: "Status", Type: "string", Description: "summary of the state: Pending, Running, Suspended, Waiting, Completed or Failed"},
	{Name: "Step", Type: "string", Description: "number of the current step, counted from 1, of all steps; 0 before the start"},
	{Name: "Succeeded", Type: "integer", Description: "number of steps that have completed"},
	{Name: "Age", Type: "date", Description: "creation time"},
	{Name: "Current", Type: "string", Priority: 1, Description: "name of the current step"},
	{Name: "Duration", Type: "string", Priority: 1, Description: "time since the first step was started, until the sequence finished"},
	{Name: "Reason", Type: "string", Priority: 1, Description: "why the sequence is in this state, in one word; blank while it runs"},
}

// NewTable prints SequentialJobs. now is the clock of running durations.
func NewTable(now func() time.Time) rest.TableConvertor {
	return table.Convertor[*batch.SequentialJob]{Columns: columns,
		Row: func(sj *batch.SequentialJob, age string) []any { return row(sj, age, now()) }}
}

// row returns the cells of the columns.
func row(hub *batch.SequentialJob, age string, now time.Time) []any {
	sj := actions.Versioned(hub)
	number, count := stepNumber(sj), helper.StepCount(&sj.Spec)
	current := ""
	if steps := helper.Steps(&sj.Spec); sj.Status.Progress.CurrentIndex != nil && number > 0 &&
		helper.Phase(sj) != batchv1alpha1.PhaseCompleted {
		current = steps[number-1].Name
	}
	return []any{
		sj.Name, string(helper.Phase(sj)), fmt.Sprintf("%d/%d", number, count), int64(sj.Status.State.Succeeded), age,
		table.Text(current), table.Text(elapsed(sj, now)), table.Text(helper.Reason(sj)),
	}
}

// stepNumber is the number of the current step, counted from 1, and never more than there are steps.
func stepNumber(sj *batchv1alpha1.SequentialJob) int {
	return min(max(int(ptr.Deref(sj.Status.Progress.CurrentIndex, -1))+1, 0), helper.StepCount(&sj.Spec))
}

// elapsed is the time that a sequence has taken; "" before its first step was started.
func elapsed(sj *batchv1alpha1.SequentialJob, now time.Time) string {
	switch status := &sj.Status; {
	case status.StartTime == nil:
		return ""
	case status.CompletionTime != nil:
		return table.Duration(status.CompletionTime.Sub(status.StartTime.Time))
	default:
		return table.Duration(now.Sub(status.StartTime.Time))
	}
}
