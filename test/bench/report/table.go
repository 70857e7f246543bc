// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// order is that of the kinds of figures; those that are not named come first.
var order = []string{"wall", "cpu", "peak", "rss", "db", "stored", "client", "calls"}

func rank(name string) int {
	kind, _, _ := strings.Cut(name, "/")
	return slices.Index(order, kind)
}

// Table tells all figures of the scenarios: medians, with the smallest and the largest value beside them.
func Table(scenarios []*Scenario) string {
	var out bytes.Buffer
	for i, s := range scenarios {
		if i == 0 {
			fmt.Fprintf(&out, "%s\n", s.Host)
		}
		fmt.Fprintf(&out, "\n== %s  (%s; %d runs)\n", s.Name, sizes(s.Sizes), s.Runs)
		for _, p := range s.Phases {
			fmt.Fprintf(&out, "\n-- %s: %s\n", s.Name, p.Name)
			columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
			for _, f := range p.Figures {
				fmt.Fprintf(columns, "  %s\t%s\t%s\t%s\n", f.Name, number(f.Median), f.Unit, spread(f))
			}
			_ = columns.Flush() // writing to memory does not fail
		}
	}
	return out.String()
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
	return number(f.Min) + " - " + number(f.Max)
}

// number has three digits that mean something, and all of those before the point.
func number(v float64) string {
	switch {
	case v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	case math.Abs(v) >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}
