// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// How many lines there are of what can be many.
const (
	mostNodes   = 10
	mostDomains = 20
	mostRows    = 20
)

// Lines implements View.
func (t *Top) Lines(terminal cli.Terminal, all bool) []string {
	resources := t.resources()
	columns := withResources(resources, cli.Column{Title: "REPLICATEDJOB"}, cli.Column{Title: "JOBS READY"}, cli.Column{Title: "PODS READY"},
		cli.Column{Title: "RESTARTS", Drop: dropOther})
	lines := append(t.facts(terminal, resources), table(terminal, columns, t.replicatedJobRows(terminal, resources, all))...)
	lines = append(lines, t.placementLines(terminal, all)...)
	return append(lines, t.Placement.lines(terminal, resources, all)...)
}

// table returns a table below an empty line; none without rows.
func table(terminal cli.Terminal, columns []cli.Column, rows [][]string) []string {
	if len(rows) == 0 {
		return nil
	}
	return append([]string{""}, terminal.Table(columns, rows)...)
}

// lines are the tables of domains and nodes, and the notes.
func (p *Placement) lines(terminal cli.Terminal, resources []corev1.ResourceName, all bool) []string {
	lines := table(terminal, withResources(resources, cli.Column{Title: "DOMAIN"}, cli.Column{Title: "NODES"},
		cli.Column{Title: "PODS READY"}), p.domainRows(terminal, resources, all))
	lines = append(lines, table(terminal, withResources(resources, cli.Column{Title: "NODE"}, cli.Column{Title: "DOMAIN", Drop: dropOther},
		cli.Column{Title: "PODS READY"}),
		p.nodeRows(terminal, resources, all))...)
	for _, note := range p.Notes {
		lines = append(append(lines, ""), terminal.Wrap("note: "+note, "", "")...)
	}
	return lines
}

// note implements View.
func (p *Placement) note(text string) { p.Notes = append(p.Notes, text) }

// facts are the lines about the set as a whole.
func (t *Top) facts(terminal cli.Terminal, resources []corev1.ResourceName) []string {
	rows := [][]string{
		{"Set", "jobset/" + t.Name + ", " + terminal.Paint(stateColor(t.State), t.Words())},
		{"Jobs", terminal.Paint(shareColor(t.JobsReady, t.JobsWanted), fmt.Sprintf("%s of %s ready", cli.Number(t.JobsReady),
			cli.Number(t.JobsWanted)))},
	}
	rows = append(rows, t.Totals.facts(terminal, resources, "of an earlier attempt")...)
	if t.Limit > 0 || t.Restarts > 0 {
		text := cli.Number(t.Restarts) + " of the whole set"
		if t.Limit > 0 {
			text += fmt.Sprintf(", %s of %s counted", cli.Number(t.Counted), cli.Number(t.Limit))
		}
		rows = append(rows, []string{"Restarts", text})
	}
	if a := t.Attempts; a != nil {
		rows = append(rows, []string{"Attempts", a.text()})
	}
	if r := t.ReadyShare; r != nil {
		rows = append(rows, []string{"Ready share", fmt.Sprintf("%.1f%%: all Jobs ready for %s of %s", 100*r.Share, span(r.ReadySeconds),
			span(r.LifeSeconds))})
	}
	if g := t.Goodput; g != nil {
		rows = append(rows, []string{"Goodput", g.text()})
	}
	if t.PlacementPending != "" {
		rows = append(rows, []string{"Domains", "waits for domains: " + t.PlacementPending})
	}
	return written(terminal, rows)
}

// written are facts below each other.
func written(terminal cli.Terminal, facts [][]string) (lines []string) {
	for _, fact := range facts {
		lines = append(lines, terminal.Wrap(fact[1], cli.Pad(terminal.Paint(cli.Bold, fact[0]), factsFrom), strings.Repeat(" ", factsFrom))...)
	}
	return lines
}

// facts are those about all pods. The word is for pods that are leaving.
func (t *Totals) facts(terminal cli.Terminal, resources []corev1.ResourceName, leaving string) [][]string {
	facts := [][]string{{"Pods", terminal.Paint(t.Pods.color(), t.Pods.text(leaving))}}
	var requests []string
	for _, name := range resources {
		if quantity, found := t.Requests[name]; found {
			requests = append(requests, formatted(name, quantity)+" "+string(name))
		}
	}
	if len(requests) > 0 {
		facts = append(facts, []string{"Requests", strings.Join(requests, ", ")})
	}
	return facts
}

// factsFrom is the column from which the facts stand.
const factsFrom = len("Ready share") + 2

func (p *Pods) text(leaving string) string {
	text := fmt.Sprintf("%s of %s ready", cli.Number(p.Ready), cli.Number(p.Wanted))
	for _, more := range []struct {
		n    int
		what string
	}{
		{p.Succeeded, "succeeded"}, {p.Failed, "failed"}, {p.Existing - p.Ready - p.Succeeded - p.Failed, "not ready"}, {p.Removed, "removed"},
		{p.Wanted - p.Existing - p.Removed, "missing"}, {p.Leaving, leaving},
	} {
		if more.n > 0 {
			text += fmt.Sprintf(", %s %s", cli.Number(more.n), more.what)
		}
	}
	return text
}

func (a *Attempts) text() string {
	var parts []string
	listed := 0
	for _, trigger := range a.listed {
		listed += a.ByTrigger[trigger]
		parts = append(parts, fmt.Sprintf("%d %s", a.ByTrigger[trigger], trigger))
	}
	text := fmt.Sprintf("%s: ", cli.Number(a.Number))
	if listed < a.Number {
		text = fmt.Sprintf("%s, of which the last %d: ", cli.Number(a.Number), listed)
	}
	return text + strings.Join(parts, ", ")
}

// text describes the goodput and the checkpoint on which it rests.
func (g *Goodput) text() string {
	text := fmt.Sprintf("%.1f%%: %s of work kept by checkpoints", 100*g.Share, span(g.GoodSeconds))
	if g.Step == nil {
		return text + ", none reported in the last attempts"
	}
	return fmt.Sprintf("%s, the last at step %s %s ago", text, cli.Number(int(*g.Step)), cli.Duration(g.ago))
}

func span(seconds float64) string { return cli.Duration(time.Duration(seconds * float64(time.Second))) }

func (t *Top) replicatedJobRows(terminal cli.Terminal, resources []corev1.ResourceName, all bool) [][]string {
	return rowsOf(t.ReplicatedJobs, mostRows, all, "replicatedJob", func(g *ReplicatedJob) []string {
		done := g.Pods.Ready + g.Pods.Succeeded
		return append([]string{
			g.Name, fmt.Sprintf("%d/%d", g.JobsReady, g.Jobs), terminal.Paint(g.Pods.color(), fmt.Sprintf("%d/%d", done, g.Pods.Wanted)),
			cli.Number(g.Restarts),
		}, cells(resources, g.Requests)...)
	})
}

func (p *Placement) domainRows(terminal cli.Terminal, resources []corev1.ResourceName, all bool) [][]string {
	return rowsOf(p.Domains, mostDomains, all, "domain", func(d *Place) []string {
		name := d.Name
		if name == "" {
			name = "(without " + p.DomainLabel + ")"
		}
		return append([]string{name, cli.Number(d.Nodes), d.readyText(terminal)}, cells(resources, d.Requests)...)
	})
}

func (p *Placement) nodeRows(terminal cli.Terminal, resources []corev1.ResourceName, all bool) [][]string {
	var rows [][]string
	for i := range p.Nodes {
		if !all && i == mostNodes && len(p.Nodes) > mostNodes+1 {
			pods, unready := 0, 0
			for _, rest := range p.Nodes[i:] {
				pods, unready = pods+rest.Pods, unready+rest.Pods-rest.Ready
			}
			rows = append(rows, []string{fmt.Sprintf("%s with %s, %s of them not ready", more(len(p.Nodes)-i, "node"), cli.Count(pods, "pod"),
				cli.Number(unready))})
			break
		}
		n := &p.Nodes[i]
		name := n.Name
		if name == "" {
			name = "(no node yet)"
		}
		rows = append(rows, append([]string{name, n.Domain, n.readyText(terminal)}, cells(resources, n.Requests)...))
	}
	return rows
}

func (p *Place) readyText(terminal cli.Terminal) string {
	return terminal.Paint(shareColor(p.Ready, p.Pods), fmt.Sprintf("%d/%d", p.Ready, p.Pods))
}

// rowsOf returns a row of each thing. Unless all are asked for, it returns most of them, and says how many more there are.
func rowsOf[T any](things []T, most int, all bool, one string, row func(*T) []string) (rows [][]string) {
	for i := range things {
		if !all && i == most {
			return append(rows, []string{more(len(things)-i, one)})
		}
		rows = append(rows, row(&things[i]))
	}
	return rows
}

func more(n int, one string) string { return "and " + cli.Count(n, "more "+one) }

func shareColor(part, whole int) cli.Color {
	switch {
	case part >= whole:
		return cli.Good
	case part == 0:
		return cli.Bad
	}
	return cli.Busy
}

// color is the color of the share of pods that are ready, or have succeeded, of those that are not removed.
func (p *Pods) color() cli.Color {
	if p.Removed > 0 && p.Removed == p.Wanted {
		return cli.Quiet
	}
	return shareColor(p.Ready+p.Succeeded, p.Wanted-p.Removed)
}

func stateColor(state string) cli.Color {
	switch state {
	case helper.PhaseRunning, helper.PhaseCompleted:
		return cli.Good
	case helper.PhaseFailed:
		return cli.Bad
	case helper.PhaseSuspended, helper.PhaseTerminating:
		return cli.Quiet
	}
	return cli.Busy
}
