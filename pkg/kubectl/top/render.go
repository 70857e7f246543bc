// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// How many lines there are of what can be many.
const (
	mostNodes   = 10
	mostDomains = 20
	mostGroups  = 20
)

// Lines returns the figures as text.
func (t *Top) Lines(terminal cli.Terminal, all bool) []string {
	resources := t.resources()
	lines := t.facts(terminal, resources)
	add := func(columns []cli.Column, rows [][]string) {
		if len(rows) > 0 {
			lines = append(append(lines, ""), terminal.Table(columns, rows)...)
		}
	}
	add(withResources(resources, cli.Column{Title: "REPLICATEDJOB"}, cli.Column{Title: "JOBS READY"}, cli.Column{Title: "PODS READY"}, cli.Column{Title: "RESTARTS", Drop: dropOther}),
		t.groupRows(terminal, resources, all))
	add(withResources(resources, cli.Column{Title: "DOMAIN"}, cli.Column{Title: "NODES"}, cli.Column{Title: "PODS READY"}), t.domainRows(terminal, resources, all))
	add(withResources(resources, cli.Column{Title: "NODE"}, cli.Column{Title: "DOMAIN", Drop: dropOther}, cli.Column{Title: "PODS READY"}), t.nodeRows(terminal, resources, all))
	for _, note := range t.Notes {
		lines = append(append(lines, ""), terminal.Wrap("note: "+note, "", "")...)
	}
	return lines
}

// The order in which columns are left out where there is little room: CPU and memory first, devices last.
const (
	dropDevice = iota + 1
	dropOther
	dropCPU
	dropMemory
)

// withResources adds the columns of the resources.
func withResources(resources []corev1.ResourceName, columns ...cli.Column) []cli.Column {
	for _, name := range resources {
		column := cli.Column{Title: string(name), Drop: dropDevice}
		switch name {
		case corev1.ResourceCPU:
			column = cli.Column{Title: "CPU", Drop: dropCPU}
		case corev1.ResourceMemory:
			column = cli.Column{Title: "MEMORY", Drop: dropMemory}
		}
		columns = append(columns, column)
	}
	return columns
}

// resources are the names of what the set requests: CPU and memory, then the others, without storage on the nodes.
func (t *Top) resources() []corev1.ResourceName {
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	for _, name := range slices.Sorted(maps.Keys(t.Requests)) {
		if !slices.Contains(names, name) && name != corev1.ResourceEphemeralStorage {
			names = append(names, name)
		}
	}
	return names
}

// facts are the lines about the set as a whole.
func (t *Top) facts(terminal cli.Terminal, resources []corev1.ResourceName) []string {
	rows := [][]string{
		{"Set", "jobset/" + t.Name + ", " + terminal.Paint(stateColor(t.State), t.Words())},
		{"Jobs", terminal.Paint(shareColor(t.JobsReady, t.JobsWanted), fmt.Sprintf("%s of %s ready", cli.Number(t.JobsReady), cli.Number(t.JobsWanted)))},
		{"Pods", terminal.Paint(t.Pods.color(), t.podsText())},
	}
	var requests []string
	for _, name := range resources {
		if quantity, found := t.Requests[name]; found {
			requests = append(requests, formatted(name, quantity)+" "+string(name))
		}
	}
	if len(requests) > 0 {
		rows = append(rows, []string{"Requests", strings.Join(requests, ", ")})
	}
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
		rows = append(rows, []string{"Ready share", fmt.Sprintf("%.1f%%: all Jobs ready for %s of %s", 100*r.Share, span(r.ReadySeconds), span(r.LifeSeconds))})
	}
	if g := t.Goodput; g != nil {
		rows = append(rows, []string{"Goodput", g.text()})
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, terminal.Wrap(row[1], cli.Pad(terminal.Paint(cli.Bold, row[0]), factsFrom), strings.Repeat(" ", factsFrom))...)
	}
	return lines
}

// factsFrom is the column from which the facts stand.
const factsFrom = len("Ready share") + 2

func (t *Top) podsText() string {
	p := t.Pods
	text := fmt.Sprintf("%s of %s ready", cli.Number(p.Ready), cli.Number(p.Wanted))
	for _, more := range []struct {
		n    int
		what string
	}{
		{p.Succeeded, "succeeded"}, {p.Failed, "failed"}, {p.Existing - p.Ready - p.Succeeded - p.Failed, "not ready"}, {p.Removed, "removed"}, {p.Wanted - p.Existing - p.Removed, "missing"}, {p.Leaving, "of an earlier attempt"},
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

func (t *Top) groupRows(terminal cli.Terminal, resources []corev1.ResourceName, all bool) [][]string {
	var rows [][]string
	for i := range t.ReplicatedJobs {
		if !all && i == mostGroups {
			rows = append(rows, []string{more(len(t.ReplicatedJobs)-i, "replicatedJob")})
			break
		}
		g := &t.ReplicatedJobs[i]
		done := g.Pods.Ready + g.Pods.Succeeded
		rows = append(rows, append([]string{
			g.Name, fmt.Sprintf("%d/%d", g.JobsReady, g.Jobs), terminal.Paint(g.Pods.color(), fmt.Sprintf("%d/%d", done, g.Pods.Wanted)), cli.Number(g.Restarts),
		}, cells(resources, g.Requests)...))
	}
	return rows
}

func (t *Top) domainRows(terminal cli.Terminal, resources []corev1.ResourceName, all bool) [][]string {
	var rows [][]string
	for i := range t.Domains {
		if !all && i == mostDomains {
			rows = append(rows, []string{more(len(t.Domains)-i, "domain")})
			break
		}
		d := &t.Domains[i]
		name := d.Name
		if name == "" {
			name = "(without " + t.DomainLabel + ")"
		}
		rows = append(rows, append([]string{name, cli.Number(d.Nodes), d.readyText(terminal)}, cells(resources, d.Requests)...))
	}
	return rows
}

func (t *Top) nodeRows(terminal cli.Terminal, resources []corev1.ResourceName, all bool) [][]string {
	var rows [][]string
	for i := range t.Nodes {
		if !all && i == mostNodes && len(t.Nodes) > mostNodes+1 {
			pods, unready := 0, 0
			for _, rest := range t.Nodes[i:] {
				pods, unready = pods+rest.Pods, unready+rest.Pods-rest.Ready
			}
			rows = append(rows, []string{fmt.Sprintf("%s with %s, %s of them not ready", more(len(t.Nodes)-i, "node"), cli.Count(pods, "pod"), cli.Number(unready))})
			break
		}
		n := &t.Nodes[i]
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

func more(n int, one string) string { return "and " + cli.Count(n, "more "+one) }

func cells(resources []corev1.ResourceName, requests Resources) []string {
	row := make([]string, 0, len(resources))
	for _, name := range resources {
		quantity, found := requests[name]
		if !found {
			row = append(row, "-")
			continue
		}
		row = append(row, formatted(name, quantity))
	}
	return row
}

// formatted writes a sum as a person would: CPUs with decimals, bytes in the largest fitting unit.
func formatted(name corev1.ResourceName, quantity resource.Quantity) string {
	switch {
	case name == corev1.ResourceCPU:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", quantity.AsApproximateFloat64()), "0"), ".")
	case name == corev1.ResourceMemory, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		value, unit := quantity.AsApproximateFloat64(), ""
		for _, next := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
			if value < 1024 {
				break
			}
			value, unit = value/1024, next
		}
		return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + unit
	}
	return cli.Number(int(quantity.Value()))
}

func shareColor(part, whole int) cli.Color {
	switch {
	case part >= whole:
		return cli.Good
	case part == 0:
		return cli.Bad
	}
	return cli.Busy
}

// color is that of the share of pods that are ready, or have succeeded, of those that are not removed.
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
