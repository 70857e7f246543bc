// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// order is the order of the kinds of figures; those that are not named come first.
var order = []string{"cpu", "peak", "rss", "db", "stored", "client", "calls", "sent"}

// processFigures are the kinds of figures that there is one of for each process.
var processFigures = []string{"cpu", "peak", "rss"}

func rank(name string) int {
	kind, _, _ := strings.Cut(name, "/")
	return slices.Index(order, kind)
}

// Table prints all figures of the scenarios: medians, with the smallest and the largest value beside them.
func Table(scenarios []*Scenario) string {
	var out bytes.Buffer
	for i, s := range scenarios {
		if i == 0 {
			fmt.Fprintf(&out, "%s\n", HostOf(scenarios))
		}
		fmt.Fprintf(&out, "\n== %s  (%s; %d runs)\n", s.Name, sizes(s.Sizes), s.Runs)
		for _, p := range s.Phases {
			fmt.Fprintf(&out, "\n-- %s: %s\n", s.Name, p.Name)
			p.write(&out)
		}
	}
	return out.String()
}

func (p *Phase) write(out io.Writer) {
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range p.Figures {
		if rank(f.Name) < 0 || strings.HasPrefix(f.Name, "db/") || strings.HasPrefix(f.Name, "stored/") {
			fmt.Fprintf(columns, "  %s\t%s %s\t%s\n", f.Name, number(f.Median), f.Unit, spread(f))
		}
	}
	_ = columns.Flush() // what it writes to is memory
	p.writeProcesses(out)
	p.writeCalls(out, "client/jobset-controller", "calls by jobset-controller")
	p.writeCalls(out, "calls/jobset-apiserver", "calls to jobset-apiserver")
	p.writeCalls(out, "calls/kube-apiserver", "calls to kube-apiserver")
	for _, program := range p.senders() {
		p.writeCalls(out, sent+program, "calls sent by "+program)
	}
}

// senders returns the programs whose requests are counted as they send them.
func (p *Phase) senders() (programs []string) {
	for _, f := range p.Figures {
		if program, _, ok := cutFigure(f.Name, sent); ok && !slices.Contains(programs, program) {
			programs = append(programs, program)
		}
	}
	return programs
}

// writeProcesses has a line for each process.
func (p *Phase) writeProcesses(out io.Writer) {
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	written := false
	for _, f := range p.Figures {
		kind, process, _ := strings.Cut(f.Name, "/")
		if kind != "cpu" {
			continue
		}
		if !written {
			fmt.Fprint(columns, "  process\tCPU s\t\tpeak MiB\t\tRSS MiB\t\n")
			written = true
		}
		fmt.Fprintf(columns, "  %s", process)
		for _, kind := range processFigures {
			if f := p.Figure(kind + "/" + process); f != nil {
				fmt.Fprintf(columns, "\t%s\t%s", number(f.Median), spread(f))
			}
		}
		fmt.Fprintln(columns)
	}
	_ = columns.Flush() // what it writes to is memory
}

// writeCalls has all requests to or from one program in one line.
func (p *Phase) writeCalls(out io.Writer, prefix, title string) {
	var calls []string
	for _, f := range p.Figures {
		if call, ok := strings.CutPrefix(f.Name, prefix+"/"); ok {
			calls = append(calls, number(f.Median)+" "+call)
		}
	}
	if len(calls) > 0 {
		fmt.Fprintf(out, "  %s: %s\n", title, strings.Join(calls, ", "))
	}
}

// HostOf is the machine of the first scenario that ran with our programs, or of the first one if there is none.
func HostOf(scenarios []*Scenario) Host {
	for _, s := range scenarios {
		if !isUpstream(s.Name) {
			return s.Host
		}
	}
	return scenarios[0].Host
}

// String is one line about a machine.
func (h Host) String() string {
	return fmt.Sprintf("%d CPUs (%s), %d MiB, %s, %s, Kubernetes %s, jobset-apiserver %s, storage %s",
		h.CPUs, h.Model, h.MemoryMiB, h.System, h.Go, h.Kubernetes, h.Program, h.Storage)
}

func sizes(sizes map[string]int) string {
	var words []string
	for name, size := range sizes {
		words = append(words, fmt.Sprintf("%s %d", name, size))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

func spread(f *Figure) string {
	if f.Min == f.Max {
		return ""
	}
	return "(" + number(f.Min) + " - " + number(f.Max) + ")"
}

// number has three digits that mean something, and all of those before the point.
func number(v float64) string {
	switch {
	case v == math.Trunc(v), math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	case math.Abs(v) >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}
