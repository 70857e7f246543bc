// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Lines implements View.
func (t *Sequence) Lines(terminal cli.Terminal, now time.Time, all bool) []string {
	top := t.items(now, all)
	return draw(terminal, &top).lines(columns)
}

// items returns the sequence with its steps. The subtree of a JobSet that has completed is shown only if all is.
func (t *Sequence) items(now time.Time, all bool) item {
	top := item{
		name: "sequentialjob/" + t.Name, state: t.State, ready: of(t.Succeeded, t.StepCount), age: age(now, &t.CreateTime), message: t.message(),
		severity: sequenceSeverity[batchv1alpha1.SequentialJobPhase(t.State)],
	}
	var jobs []*Job
	pods, restarts := 0, 0
	for i := range t.Steps {
		s := &t.Steps[i]
		restarts += s.restarts()
		if s.Job != nil {
			jobs, pods = append(jobs, s.Job), pods+len(s.Job.Pods)
		}
	}
	top.restarts = strconv.Itoa(restarts)
	chosen := choose(jobs, pods, all)
	for i := range t.Steps {
		top.children = append(top.children, t.Steps[i].item(now, chosen, all))
	}
	return top
}

// message is what the line of the sequence says at its end: the number and the name of the step, and then the reason of the state.
func (t *Sequence) message() string {
	text := "step " + t.StepOf()
	if t.StepName != "" {
		text += " " + t.StepName
	}
	if t.Reason != "" {
		text += "; " + t.Reason
	}
	if t.Message != "" {
		text += ": " + t.Message
	}
	return oneLine(text)
}

var sequenceSeverity = map[batchv1alpha1.SequentialJobPhase]severity{
	batchv1alpha1.PhaseFailed: failed, batchv1alpha1.PhasePending: starting, batchv1alpha1.PhaseWaiting: starting,
}

var stepSeverity = map[batchv1alpha1.StepState]severity{
	batchv1alpha1.StepFailed: failed, batchv1alpha1.StepStarting: starting, batchv1alpha1.StepWaiting: starting,
	batchv1alpha1.StepPending: starting,
}

// restarts is how often the step was run again.
func (s *Step) restarts() int { return max(0, s.Attempts-1) }

func (s *Step) item(now time.Time, chosen choice, all bool) item {
	it := item{
		name: "step/" + s.Name, state: s.State, restarts: strconv.Itoa(s.restarts()), age: age(now, s.StartTime), message: s.Message,
		severity: stepSeverity[batchv1alpha1.StepState(s.State)],
	}
	switch {
	case s.Job != nil:
		it.children = []item{s.Job.item(now, chosen)}
	case s.JobSet != nil:
		below := s.JobSet.items(now, all)
		if s.State == string(batchv1alpha1.StepSucceeded) && !all {
			below.children = nil
		}
		it.children = []item{below}
	case s.State == string(batchv1alpha1.StepPending):
		it.restarts = ""
	case s.State != string(batchv1alpha1.StepSucceeded) && s.State != string(batchv1alpha1.StepFailed):
		it.children = []item{{name: fmt.Sprintf("%s/%s", strings.ToLower(s.Kind), s.ChildName), state: Missing, severity: starting}}
	}
	return it
}

var _ View = (*Sequence)(nil)
