// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strconv"
	"strings"
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

var stepColors = map[batchv1alpha1.StepState]cli.Color{
	batchv1alpha1.StepSucceeded: cli.Good, batchv1alpha1.StepRunning: cli.Good, batchv1alpha1.StepFailed: cli.Bad,
	batchv1alpha1.StepStarting: cli.Busy, batchv1alpha1.StepWaiting: cli.Busy, batchv1alpha1.StepSuspended: cli.Quiet,
	batchv1alpha1.StepPending: cli.Quiet,
}

// stepColumns are the columns of the table of steps. Nothing of them is cut.
var stepColumns = []cli.Column{
	{Title: "#"}, {Title: "STEP", Least: 14, Wrap: true}, {Title: "ATTEMPTS", Least: 8, Wrap: true, Drop: 2, Label: "attempts: "},
	{Title: "BEGAN", Least: 8, Wrap: true, Drop: 1, Label: "began: "}, {Title: "LASTED"}, {Title: "STATE"},
	{Title: "REASON", Least: 24, Wrap: true, Drop: 3, Label: "reason: "},
}

// table writes a line for each step. What failed first follows in a line of its own.
func (t *Sequence) table(b *strings.Builder, s screen) {
	var rows [][]string
	for i := range t.Steps {
		run := &t.Steps[i]
		rows = append(rows, []string{
			strconv.Itoa(run.Index + 1), cli.Clean(run.Name), run.attempts(), run.began(s.zone, "15:04:05"), run.lasted(),
			s.Paint(stepColors[batchv1alpha1.StepState(run.State)], run.State), run.reason(),
		})
		if run.FirstCause != nil {
			rows = append(rows, s.detail(cli.Bad, "first cause: "+causeOf(run.FirstCause)))
		}
	}
	lines(b, s.Table(stepColumns, rows))
}

func (r *StepRun) attempts() string {
	if r.Attempts == 0 {
		return "-"
	}
	return strconv.Itoa(r.Attempts)
}

func (r *StepRun) began(zone *time.Location, layout string) string {
	if r.Begin == nil {
		return "-"
	}
	return r.Begin.In(zone).Format(layout)
}

func (r *StepRun) lasted() string {
	if r.Begin == nil {
		return "-"
	}
	return cli.Seconds(r.Seconds)
}

// reason is why the step failed.
func (r *StepRun) reason() string {
	if r.Message == "" {
		return cli.Clean(r.Reason)
	}
	return cli.Clean(r.Reason + ": " + r.Message)
}

// viewStep is a step on the page.
type viewStep struct {
	Number                                                                 int
	Name, Child, Attempts, Began, Lasted, State, Class, Reason, FirstCause string
}

// stepClasses are the colors of states on the page.
var stepClasses = map[batchv1alpha1.StepState]string{
	batchv1alpha1.StepSucceeded: "completed", batchv1alpha1.StepRunning: "running", batchv1alpha1.StepFailed: "failed",
	batchv1alpha1.StepStarting: "starting",
}

// fill puts the steps into the page.
func (t *Sequence) fill(v *view, zone *time.Location) {
	for i := range t.Steps {
		run := &t.Steps[i]
		out := viewStep{
			Number: run.Index + 1, Name: cli.Clean(run.Name), Child: strings.ToLower(run.Kind) + "/" + run.ChildName, Attempts: run.attempts(),
			Began: run.began(zone, "2006-01-02 15:04:05"), Lasted: run.lasted(), State: run.State,
			Class: stepClasses[batchv1alpha1.StepState(run.State)], Reason: run.reason(),
		}
		if run.FirstCause != nil {
			out.FirstCause = causeOf(run.FirstCause)
		}
		v.Steps = append(v.Steps, out)
	}
}
