// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Run is the Reader of runs of the archive. It draws the last status that the record has.
func Run(ctx context.Context, c *cli.Clients, name string, withJobs bool) (View, error) {
	if withJobs {
		return nil, errors.New("--jobs: must be absent for a run: its record has no Jobs")
	}
	run, err := record.Get(ctx, c, name)
	if err != nil {
		return nil, err
	}
	return buildRun(run, time.Now()), nil
}

// RunTimeline is a run of the archive over time, and what -o json prints.
type RunTimeline struct {
	Name      string                    `json:"name"`
	Namespace string                    `json:"namespace"`
	Object    archivev1alpha1.RunObject `json:"object"`
	State     archivev1alpha1.RunState  `json:"state"`
	Reason    string                    `json:"reason,omitempty"`
	Message   string                    `json:"message,omitempty"`
	User      string                    `json:"user,omitempty"`
	EndUser   string                    `json:"endUser,omitempty"`
	Begin     time.Time                 `json:"begin"`
	End       time.Time                 `json:"end"`
	Seconds   float64                   `json:"seconds"`
	// JobSet or SequentialJob is the timeline of the object until the end of the run. Both are absent if the record lacks its last status.
	JobSet        *Timeline                    `json:"jobSet,omitempty"`
	SequentialJob *Sequence                    `json:"sequentialJob,omitempty"`
	Failures      []archivev1alpha1.RunFailure `json:"failures,omitempty"`

	run *archivev1alpha1.Run
	now time.Time
}

func buildRun(run *archivev1alpha1.Run, now time.Time) *RunTimeline {
	end := later(run.EndTime.UTC(), run.BeginTime.UTC())
	t := &RunTimeline{
		Name: run.Name, Namespace: run.Namespace, Object: run.Object, State: run.State, Reason: run.Reason, Message: run.Message,
		User: run.User, EndUser: run.EndUser, Begin: run.BeginTime.UTC(), End: end, Seconds: end.Sub(run.BeginTime.Time).Seconds(),
		Failures: run.Failures, run: run, now: now,
	}
	if js := record.JobSet(run); js != nil && len(js.Status.Attempts) > 0 {
		t.JobSet = t.ofJobSet(js)
	}
	if sj := record.SequentialJob(run); sj != nil {
		t.SequentialJob = t.ofSequence(sj)
	}
	return t
}

// phase is the state of the run, in place of that of a status which may be from before the end.
func (t *RunTimeline) phase() snapshot.Phase {
	return snapshot.Phase{State: cli.Clean(string(t.State)), Reason: cli.Clean(t.Reason), Message: cli.Clean(t.Message)}
}

// ofJobSet draws the attempts of a set. What still ran when the set was deleted ended with the run.
func (t *RunTimeline) ofJobSet(js *jobsetv1alpha2.JobSet) *Timeline {
	last := &js.Status.Attempts[len(js.Status.Attempts)-1]
	if last.EndTime == nil {
		last.EndTime, last.Outcome, last.EndUser = ptr.To(t.run.EndTime), jobsetv1alpha2.OutcomeCancelled, t.EndUser
	}
	out := Build(js, t.End)
	out.Phase, out.Finished = t.phase(), true
	if n := len(out.Phases); n > 0 && out.Phases[n-1].Open {
		out.Phases[n-1].Open = false
		if !out.Phases[n-1].End.After(out.Phases[n-1].Begin) {
			out.Phases = out.Phases[:n-1]
		}
	}
	return out
}

// ofSequence draws the steps of a sequence. A step that still ran when the sequence was deleted ended with the run.
func (t *RunTimeline) ofSequence(sj *batchv1alpha1.SequentialJob) *Sequence {
	out := buildSequence(sj, t.End)
	out.Phase, out.Finished = t.phase(), true
	for i := range out.Steps {
		out.Steps[i].Open = false
	}
	return out
}

// drawing implements View.
func (t *RunTimeline) drawing() *drawing {
	d := t.whole()
	switch {
	case t.JobSet != nil:
		d = t.JobSet.drawing()
	case t.SequentialJob != nil:
		d = t.SequentialJob.drawing()
	}
	d.kind, d.name, d.namespace = cli.Run, cli.Clean(t.Name), t.Namespace
	d.life = record.Sentence(t.run, t.now)
	if d.note != "" {
		d.note += "; "
	}
	d.note += "This is a record of the archive. The object may be gone, or may run again."
	return d
}

// outcomes are the marks at the end of the bar of a run.
var outcomes = map[archivev1alpha1.RunState]jobsetv1alpha2.AttemptOutcome{
	archivev1alpha1.RunCompleted: jobsetv1alpha2.OutcomeCompleted, archivev1alpha1.RunFailed: jobsetv1alpha2.OutcomeFailed,
	archivev1alpha1.RunCancelled: jobsetv1alpha2.OutcomeCancelled, archivev1alpha1.RunDeleted: jobsetv1alpha2.OutcomeCancelled,
}

// whole is one bar for the run, and a line for each failure.
func (t *RunTimeline) whole() *drawing {
	d := &drawing{
		parts: "Run", begin: t.Begin, end: t.End, finished: true, fill: func(*view, *time.Location) {},
		use: fmt.Sprintf("%s in %s, all pods ready for %s", cli.Count(int(t.run.Attempts), "attempt"), cli.Seconds(t.Seconds),
			cli.Seconds(float64(t.run.ReadyMilliseconds)/1000)),
		rows: []row{{
			label: record.Object(t.run), detail: cli.Seconds(t.Seconds) + ", " + strings.ToLower(cli.Clean(string(t.State))),
			phases:  []Phase{{Kind: Running, Begin: t.Begin, End: t.End, Seconds: t.Seconds}},
			outcome: string(outcomes[t.State]),
		}},
	}
	if len(t.Failures) > 0 {
		d.table = t.table
	}
	return d
}

// failureColumns are the columns of the table of failures.
var failureColumns = []cli.Column{
	{Title: "ATTEMPT"}, {Title: "FAILED", Least: 8, Wrap: true}, {Title: "FIRST CAUSE", Least: 24, Wrap: true},
}

// table writes a line for each failure, the newest last.
func (t *RunTimeline) table(b *strings.Builder, s screen) {
	rows := make([][]string, 0, len(t.Failures))
	for i := range t.Failures {
		f := &t.Failures[i]
		attempt, at := "-", "-"
		if f.Attempt > 0 {
			attempt = strconv.Itoa(int(f.Attempt))
		}
		if f.Time != nil {
			at = f.Time.In(s.zone).Format("2006-01-02 15:04:05")
		}
		rows = append(rows, []string{attempt, at, s.Paint(cli.Bad, record.Failure(f))})
	}
	lines(b, s.Table(failureColumns, rows))
}
