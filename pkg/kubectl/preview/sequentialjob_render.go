// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Lines implements View.
func (s *Sequence) Lines(t cli.Terminal) []string {
	lines := s.heading(t)
	if s.Exists {
		color, text := s.updateConclusion()
		return append(append(lines, renderChanges(s.Changes, t)...), painted(color, text, t)...)
	}
	if s.Verdict.Answer != Accepted {
		return lines
	}
	for i := range s.Steps {
		lines = append(append(lines, ""), s.Steps[i].lines(t)...)
	}
	color, text := s.conclusion()
	return append(append(lines, ""), painted(color, text, t)...)
}

// lines describe the child of the step. What is said of a JobSet stands below it.
func (s *Step) lines(t cli.Terminal) []string {
	lines := []string{t.Paint(cli.Bold, fmt.Sprintf("step %d: %s", s.Index+1, s.Name))}
	if s.Queue != "" {
		lines = append(lines, wrap("  ", "waits in the queue "+s.Queue, t)...)
	}
	if s.NameTaken {
		lines = append(lines, "  "+t.Paint(cli.Bad, fmt.Sprintf("exists already: %s; the sequence would wait until it is gone", s.ChildName)))
	}
	if s.JobSet != nil {
		for _, line := range s.JobSet.Lines(narrower(t)) {
			lines = append(lines, strings.TrimRight("  "+line, " "))
		}
		return lines
	}
	if s.Job == nil {
		return append(lines, fmt.Sprintf("  %s %s", s.Kind, s.ChildName))
	}
	rows := [][]string{{"Job", s.ChildName, "1", paint(t, s.Job.Answer)}}
	also := [][]string{nil, details("    ", s.Job, t)}
	if s.Pods > 0 {
		answer := "Not asked"
		if s.Pod != nil {
			answer = paint(t, s.Pod.Answer)
		}
		rows = append(rows, []string{"Pod", s.ChildName + "-" + random, cli.Number(s.Pods), answer})
		also = append(also, details("    ", s.Pod, t))
	}
	for i, line := range indented(childColumns, rows, t) {
		lines = append(append(lines, line), also[i]...)
	}
	if len(s.Quota) > 0 {
		lines = append(lines, renderQuota(s.Quota, t)...)
	}
	return lines
}

func narrower(t cli.Terminal) cli.Terminal {
	if t.Width > 0 {
		t.Width -= 2
	}
	return t
}

func (s *Sequence) conclusion() (cli.Color, string) {
	var children []string
	for i := range s.Steps {
		children = append(children, s.Steps[i].ChildName)
	}
	text := fmt.Sprintf("would run %s one after another: %s", cli.Count(len(s.Steps), "step"), strings.Join(children, ", "))
	switch {
	case s.Refused():
		return cli.Bad, "Not all of this would be created: the sequence would not run as it is meant to."
	case s.unknown():
		return cli.Busy, "As far as your permissions show, the sequence " + text + "."
	}
	return cli.Good, "The sequence " + text + "."
}

// updateConclusion is the last sentence about a sequence that exists.
func (s *Sequence) updateConclusion() (cli.Color, string) {
	has := func(effect Effect) bool {
		return slices.ContainsFunc(s.Changes, func(c Change) bool { return c.Effect == effect })
	}
	switch {
	case s.Verdict.Answer != Accepted:
		return cli.Bad, "The sequence would not change at all."
	case len(s.Changes) == 0:
		return cli.Good, "The sequence would not change."
	}
	text := "The sequence would change in " + cli.Count(len(s.Changes), "field")
	switch {
	case has(EffectSuspend):
		text += ", and be suspended."
	case has(EffectResume):
		text += ", and be resumed."
	case has(EffectRestart):
		text += ", and its current step would be run again."
	default:
		text += ". No pod would be stopped or started."
	}
	return cli.Good, text
}
