// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// render returns the report for humans.
func render(r *Report, others manifest, t cli.Terminal) []string {
	var lines []string
	for i, view := range r.Sets {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, view.Lines(t)...)
	}
	for i, text := range others.summary() {
		if i == 0 {
			lines = append(lines, "")
		}
		lines = append(lines, painted(cli.Quiet, text, t)...)
	}
	return lines
}

// Lines implements View.
func (s *Set) Lines(t cli.Terminal) []string {
	lines := s.heading(t)
	if s.Exists {
		return append(lines, renderUpdate(s, t)...)
	}
	if s.Verdict.Answer != Accepted {
		return lines
	}
	lines = append(lines, "")
	lines = append(lines, renderChildren(s, t)...)
	lines = append(lines, s.Placement.lines(t)...)
	lines = append(lines, s.Scheduling.lines(t)...)
	if len(s.Quota) > 0 {
		lines = append(lines, "")
		lines = append(lines, renderQuota(s.Quota, t)...)
	}
	return append(append(lines, ""), conclusion(s, t)...)
}

// heading are the answer about the object, and the notes.
func (o *Object) heading(t cli.Terminal) []string {
	title := t.Paint(cli.Bold, fmt.Sprintf("%s %s in namespace %s", o.Kind, o.Name, o.Namespace))
	lines := append([]string{title + ": " + o.answer(t)}, details("  ", &o.Verdict, t)...)
	for _, note := range o.Notes {
		lines = append(lines, wrap("  note: ", note, t)...)
	}
	return lines
}

func (o *Object) answer(t cli.Terminal) string {
	if o.Verdict.Answer != Accepted || !o.Exists {
		return paint(t, o.Verdict.Answer)
	}
	if len(o.Changes) == 0 {
		return t.Paint(cli.Good, "Unchanged")
	}
	return t.Paint(cli.Good, "Changed")
}

func conclusion(s *Set, t cli.Terminal) []string {
	text := fmt.Sprintf("would create %s and %s", cli.Count(s.Jobs, "Job"), cli.Count(s.Pods, "pod"))
	switch {
	case s.Refused():
		return painted(cli.Bad, "Not all of this would be created: the set would not run as it is meant to.", t)
	case s.unknown():
		return painted(cli.Busy, "As far as your permissions show, the set "+text+".", t)
	}
	return painted(cli.Good, "The set "+text+".", t)
}

func painted(color cli.Color, text string, t cli.Terminal) []string {
	lines := wrap("", text, t)
	for i := range lines {
		lines[i] = t.Paint(color, lines[i])
	}
	return lines
}

// childColumns and quotaColumns are the columns of the tables. The answer stays on narrow terminals, where names are shortened.
var (
	childColumns = []cli.Column{{Title: "KIND"}, {Title: "NAMES"}, {Title: "COUNT", Drop: 1}, {Title: "ANSWER"}}
	quotaColumns = []cli.Column{{Title: "QUOTA"}, {Title: "RESOURCE"}, {Title: "ADDS", Drop: 3}, {Title: "USED", Drop: 2},
		{Title: "HARD", Drop: 1}, {Title: "ANSWER"}}
)

// indented returns a table that begins two columns from the left.
func indented(columns []cli.Column, rows [][]string, t cli.Terminal) []string {
	if t.Width > 0 {
		t.Width -= 2
	}
	lines := t.Table(columns, rows)
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return lines
}

// row is a line about children, with what there is to say about them.
type row struct {
	cells   []string
	verdict *Verdict
	also    []string
}

func renderChildren(s *Set, t cli.Terminal) []string {
	rows := []row{{}} // stands for the header
	shared := joined(s.ReplicatedJobs)
	for i := range shared {
		rows = append(rows, replicatedJobRows(&shared[i], t)...)
	}
	child := func(kind string, c *Child) {
		answer := paint(t, c.Verdict.Answer)
		if c.Exists {
			answer = "Exists, and is used as it is"
		}
		rows = append(rows, row{cells: []string{kind, c.Name, "1", answer}, verdict: &c.Verdict})
	}
	if s.Service != nil {
		child("Service", s.Service)
	}
	for i := range s.Claims {
		child("Claim", &s.Claims[i])
	}
	cells := make([][]string, 0, len(rows))
	for _, r := range rows[1:] {
		cells = append(cells, r.cells)
	}
	var lines []string
	for i, line := range indented(childColumns, cells, t) {
		lines = append(lines, line)
		for _, text := range rows[i].also {
			lines = append(lines, wrap("    ", text, t)...)
		}
		lines = append(lines, details("    ", rows[i].verdict, t)...)
	}
	return lines
}

func replicatedJobRows(rj *ReplicatedJob, t cli.Terminal) []row {
	if rj.Job == nil {
		return []row{{cells: []string{"Job", "(none of " + rj.Name + ")", "0", "-"}}}
	}
	job := row{cells: []string{"Job", rj.JobNames, cli.Number(rj.Jobs), paint(t, rj.Job.Answer)}, verdict: rj.Job}
	if rj.TakenNames != "" {
		job.also = append(job.also, t.Paint(cli.Bad, "exists already: "+rj.TakenNames+"; the set would wait until it is gone"))
	}
	for _, after := range rj.After {
		name, state, _ := strings.Cut(after, ":")
		job.also = append(job.also, t.Paint(cli.Quiet, fmt.Sprintf("created once %s is %s", name, strings.ToLower(state))))
	}
	if rj.PodNames == "" {
		return []row{job}
	}
	pod := row{cells: []string{"Pod", rj.PodNames, cli.Number(rj.Pods), "Not asked"}, verdict: rj.Pod}
	if rj.Pod != nil {
		pod.cells[3] = paint(t, rj.Pod.Answer)
	}
	if rj.HostNames != "" {
		pod.also = append(pod.also, t.Paint(cli.Quiet, "DNS name "+rj.HostNames))
	}
	return []row{job, pod}
}

func renderQuota(quota []QuotaLine, t cli.Terminal) []string {
	var rows [][]string
	for _, q := range quota {
		answer := t.Paint(cli.Good, "Fits")
		if q.Short != "" {
			answer = t.Paint(cli.Bad, "Short by "+q.Short)
		}
		rows = append(rows, []string{q.Quota, q.Resource, q.Adds, q.Used, q.Hard, answer})
	}
	return indented(quotaColumns, rows, t)
}

func paint(t cli.Terminal, answer Answer) string {
	colors := map[Answer]cli.Color{Accepted: cli.Good, Refused: cli.Bad, Unknown: cli.Busy}
	return t.Paint(colors[answer], string(answer))
}

// details returns the problems and warnings of a verdict, which are never cut: a user must be able to read them.
func details(indent string, v *Verdict, t cli.Terminal) []string {
	if v == nil {
		return nil
	}
	var lines []string
	for _, problem := range v.Problems {
		lines = append(lines, wrap(indent, problem, t)...)
	}
	for _, warning := range v.Warnings {
		lines = append(lines, wrap(indent+"warning: ", warning, t)...)
	}
	return lines
}

// wrap breaks a text between words at the width of the terminal. All lines stand under the first.
func wrap(prefix, text string, t cli.Terminal) []string {
	return t.Wrap(strings.Join(strings.Fields(text), " "), prefix, strings.Repeat(" ", len(prefix)))
}
