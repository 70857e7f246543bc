// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Sequence is the life of one sequence as data: what -o json prints, and what chart and page are drawn from.
type Sequence struct {
	// SequentialJob and Namespace name the sequence.
	SequentialJob string `json:"sequentialJob"`
	Namespace     string `json:"namespace"`
	snapshot.SequenceSummary
	// CreateTime is when it was created, and begin of the chart. End is when it finished, or the time of reading.
	CreateTime time.Time `json:"createTime"`
	End        time.Time `json:"end"`
	// LifeSeconds is the time from creation to End.
	LifeSeconds float64 `json:"lifeSeconds"`
	// Finished reports which of both End is.
	Finished bool `json:"finished"`
	// Steps are the steps of the spec, in order.
	Steps []StepRun `json:"steps"`
	// Jobs are the runs of the Jobs of JobSets, on request.
	Jobs []Lane `json:"jobs,omitempty"`
}

// StepRun is the current or last attempt of a step. A step that was not started has neither Begin nor End.
type StepRun struct {
	Name      string `json:"name"`
	Index     int    `json:"index"`
	Kind      string `json:"kind"`
	ChildName string `json:"childName"`
	// State is the state in status.steps, and Pending for a step that has not been started.
	State    string `json:"state"`
	Attempts int    `json:"attempts"`
	// Begin is when the attempt began, and End when it ended, or the time of reading if it has not.
	Begin   *time.Time `json:"begin,omitempty"`
	End     *time.Time `json:"end,omitempty"`
	Seconds float64    `json:"seconds,omitempty"`
	// Open reports that the attempt has not ended.
	Open       bool                         `json:"open,omitempty"`
	ExitCode   *int32                       `json:"exitCode,omitempty"`
	Reason     string                       `json:"reason,omitempty"`
	Message    string                       `json:"message,omitempty"`
	FirstCause *jobsetv1alpha2.FailureCause `json:"firstCause,omitempty"`
	// Blocked is since when the cluster has refused the pods of the step, or has found no node for them; absent if it does not.
	Blocked *time.Time `json:"blocked,omitempty"`
}

// SequentialJob is the Reader of SequentialJobs. With Jobs, it draws those of their JobSets too.
func SequentialJob(ctx context.Context, c *cli.Clients, name string, withJobs bool) (View, error) {
	if !withJobs {
		sj, err := c.JobSets.BatchV1alpha1().SequentialJobs(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return buildSequence(sj, time.Now()), nil
	}
	s, err := snapshot.LoadSequence(ctx, c, name, false)
	if err != nil {
		return nil, err
	}
	t := buildSequence(s.SequentialJob, s.Now)
	for i := range s.Steps {
		if set := s.Steps[i].Set; set != nil {
			t.Jobs = append(t.Jobs, Lanes(set.Jobs, nil, s.Now)...)
		}
	}
	return t, nil
}

// buildSequence works out the timeline of a sequence from its status.
func buildSequence(sj *batchv1alpha1.SequentialJob, now time.Time) *Sequence {
	t := &Sequence{
		SequentialJob: sj.Name, Namespace: sj.Namespace, SequenceSummary: snapshot.SummarizeSequence(sj), CreateTime: sj.CreationTimestamp.UTC(),
		Steps: []StepRun{},
	}
	t.End = later(now.UTC(), t.CreateTime)
	if c := helper.Finished(sj); c != nil {
		t.Finished, t.End = true, later(c.LastTransitionTime.UTC(), t.CreateTime)
		if end := sj.Status.CompletionTime; end != nil {
			t.End = later(end.UTC(), t.CreateTime)
		}
	}
	t.LifeSeconds = t.End.Sub(t.CreateTime).Seconds()
	for _, step := range helper.Steps(&sj.Spec) {
		run := StepRun{
			Name: step.Name, Index: step.Index, Kind: string(step.Kind()), ChildName: helper.ChildName(sj.Name, step.Index),
			State: string(batchv1alpha1.StepPending),
		}
		if step.Index < len(sj.Status.Steps) {
			t.record(&run, &sj.Status.Steps[step.Index])
		}
		t.Steps = append(t.Steps, run)
	}
	t.block(sj)
	return t
}

// block notes since when the current step lacks pods or nodes, and why.
func (t *Sequence) block(sj *batchv1alpha1.SequentialJob) {
	c := meta.FindStatusCondition(sj.Status.Conditions, batchv1alpha1.ConditionResourcesUnavailable)
	index := helper.CurrentIndex(&sj.Status)
	if c == nil || c.Status != metav1.ConditionTrue || index >= len(t.Steps) || !t.Steps[index].Open {
		return
	}
	run := &t.Steps[index]
	since := later(c.LastTransitionTime.UTC(), *run.Begin)
	if since.Sub(*run.Begin) <= neverRan {
		since = *run.Begin
	}
	run.Blocked = &since
	if run.Reason == "" {
		run.Reason, run.Message = c.Reason, c.Message
	}
}

// neverRan is how long after its begin a step may be reported without pods or nodes to count as one that never ran: the controller reports
// pods without a node after half of it.
const neverRan = 2 * hostplan.StepUnschedulableAfter

// record adds what the status says of the step.
func (t *Sequence) record(run *StepRun, s *batchv1alpha1.SequentialJobStepStatus) {
	run.State, run.Attempts = string(s.State), int(s.Attempts)
	run.ExitCode, run.Reason, run.Message, run.FirstCause = s.ExitCode, s.Reason, s.Message, s.FirstCause
	if s.StartTime == nil || s.State == batchv1alpha1.StepPending {
		return
	}
	begin, end := s.StartTime.UTC(), t.End
	if run.Open = s.CompletionTime == nil; !run.Open {
		end = s.CompletionTime.UTC()
	}
	end = later(end, begin)
	run.Begin, run.End, run.Seconds = &begin, &end, end.Sub(begin).Seconds()
}

// stepKinds are how the bar of a step looks. All others look like one that runs.
var stepKinds = map[batchv1alpha1.StepState]Kind{
	batchv1alpha1.StepStarting: Creating, batchv1alpha1.StepWaiting: Queued, batchv1alpha1.StepSuspended: Suspended,
	batchv1alpha1.StepFailed: Failed,
}

// stepOutcomes are the marks at the end of bars.
var stepOutcomes = map[batchv1alpha1.StepState]jobsetv1alpha2.AttemptOutcome{
	batchv1alpha1.StepSucceeded: jobsetv1alpha2.OutcomeCompleted, batchv1alpha1.StepFailed: jobsetv1alpha2.OutcomeFailed,
}

// stepRow is the bar of a step; it has none before the step begins.
func stepRow(run *StepRun) row {
	r := row{label: cli.Clean(run.Name), detail: strings.ToLower(run.State)}
	if run.Begin == nil {
		return r
	}
	kind, special := stepKinds[batchv1alpha1.StepState(run.State)]
	if !special {
		kind = Running
	}
	r.phases = []Phase{{Kind: kind, Begin: *run.Begin, End: *run.End, Open: run.Open}}
	if run.Blocked != nil && kind == Running {
		r.phases = []Phase{
			{Kind: Running, Begin: *run.Begin, End: *run.Blocked}, {Kind: Starting, Begin: *run.Blocked, End: *run.End, Open: run.Open},
		}
		if run.Blocked.Equal(*run.Begin) {
			r.phases = r.phases[1:]
		}
	}
	r.detail = fmt.Sprintf("%s, %s", cli.Seconds(run.Seconds), r.detail)
	if r.outcome = string(stepOutcomes[batchv1alpha1.StepState(run.State)]); run.Open {
		r.outcome = outcomeOpen
	}
	return r
}

// drawing implements View.
func (t *Sequence) drawing() *drawing {
	d := &drawing{
		kind: cli.SequentialJob, name: t.SequentialJob, namespace: t.Namespace, life: t.life(), parts: "Steps",
		begin: t.CreateTime, end: t.End, finished: t.Finished,
		table: t.table, fill: t.fill,
	}
	for i := range t.Steps {
		run := &t.Steps[i]
		d.rows = append(d.rows, stepRow(run))
		if run.Begin != nil {
			d.begin, d.end = sooner(d.begin, *run.Begin), later(d.end, *run.End)
		}
	}
	for _, lane := range t.Jobs {
		d.rows = append(d.rows, laneRow(lane))
	}
	d.span(t.Jobs)
	return d
}

// life says in few words what became of the sequence.
func (t *Sequence) life() string {
	text := t.Words() + ", step " + t.StepOf()
	if t.StepName != "" {
		text += " " + cli.Clean(t.StepName)
	}
	return text + ", in " + cli.Seconds(t.LifeSeconds)
}
