// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/report/suspect"
)

// Node is what runs say about a node. The fields are described in docs/kubectl.md.
type Node struct {
	Name string `json:"name"`
	// Runs is the number of runs one of whose attempts failed first on the node.
	Runs int `json:"runs"`
	// Infrastructure, Program and Other are how many of the runs failed there for reasons of these classes. A run can be in several of them.
	Infrastructure int `json:"infrastructure"`
	Program        int `json:"program"`
	Other          int `json:"other"`
	// Probability is how likely this number of infrastructure failures is by chance, and Verdict is what follows from it: likely, unclear, or
	// absent.
	Probability float64       `json:"probability"`
	Verdict     suspect.Level `json:"verdict,omitempty"`
}

// NodeReport is what -o json prints by node.
type NodeReport struct {
	Heading
	// Enough means that there are enough nodes to compare; otherwise no node has a verdict.
	Enough bool `json:"enough"`
	// Median and Expected are the median of infrastructure failures of the nodes below, and the mean of those that are not suspected.
	Median   float64 `json:"median"`
	Expected float64 `json:"expected"`
	Nodes    []Node  `json:"nodes"`
}

// nodes counts runs by the nodes on which they failed first.
type nodes struct{ seen map[string]*Node }

func newNodes() *nodes { return &nodes{seen: map[string]*Node{}} }

func (n *nodes) add(run *archivev1alpha1.Run) error {
	for name, classes := range suspect.Nodes(run) {
		node := n.seen[name]
		if node == nil {
			if len(n.seen) >= mostRows {
				return tooMany("nodes")
			}
			node = &Node{Name: strings.Clone(name)}
			n.seen[node.Name] = node
		}
		node.count(classes)
	}
	return nil
}

// count counts a run with failures of these classes on the node.
func (n *Node) count(classes suspect.Classes) {
	n.Runs++
	if classes.Has(suspect.Infrastructure) {
		n.Infrastructure++
	}
	if classes.Has(suspect.Program) {
		n.Program++
	}
	if classes.Has(suspect.Other) {
		n.Other++
	}
}

// evaluated returns the nodes, those that are most likely at fault first.
func (n *nodes) evaluated() ([]Node, suspect.Evaluation) {
	counts := make(map[string]int, len(n.seen))
	for name, node := range n.seen {
		counts[name] = node.Infrastructure
	}
	j := suspect.Evaluate(counts)
	out := make([]Node, 0, len(n.seen))
	for name, node := range n.seen {
		node.Probability, node.Verdict = j.Verdicts[name].Probability, j.Verdicts[name].Level
		out = append(out, *node)
	}
	slices.SortFunc(out, func(a, b Node) int {
		return cmp.Or(cmp.Compare(b.Infrastructure, a.Infrastructure), cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Name, b.Name))
	})
	return out, j
}

func (n *nodes) report(heading Heading) any {
	all, j := n.evaluated()
	return NodeReport{Heading: heading, Enough: j.Enough, Median: j.Median, Expected: j.Expected, Nodes: all}
}

var nodeColumns = []cli.Column{
	{Title: "NODE"}, {Title: "NODE FAULTS"}, {Title: "EXPECTED", Drop: 1}, {Title: "AT FAULT"}, {Title: "BY CHANCE", Drop: 2},
	{Title: "PROGRAM FAULTS", Drop: 4}, {Title: "OTHER", Drop: 5}, {Title: "RUNS", Drop: 3},
}

var levelColors = map[suspect.Level]cli.Color{suspect.Likely: cli.Bad, suspect.Unclear: cli.Busy}

func (n *nodes) print(f *cli.Factory) error {
	all, j := n.evaluated()
	terminal := f.Terminal()
	if len(all) == 0 {
		return terminal.Lines(f.Out, "No run failed first on a node that is known.")
	}
	rows := make([][]string, 0, len(all))
	for i := range all {
		node := &all[i]
		expected, level, chance := "-", "-", "-"
		if j.Enough {
			expected, chance = strconv.FormatFloat(j.Expected, 'f', 1, 64), chanceOf(node.Probability)
		}
		if node.Verdict != suspect.None {
			level = terminal.Paint(levelColors[node.Verdict], string(node.Verdict))
		}
		rows = append(rows, []string{
			cli.Clean(node.Name), cli.Number(node.Infrastructure), expected, level, chance, cli.Number(node.Program), cli.Number(node.Other),
			cli.Number(node.Runs),
		})
	}
	lines := append(terminal.Table(nodeColumns, rows), "")
	return terminal.Lines(f.Out, append(lines, terminal.Wrap(n.basis(len(all), j), "", "")...)...)
}

// basis says what the verdicts rest on.
func (n *nodes) basis(all int, j suspect.Evaluation) string {
	if !j.Enough {
		return fmt.Sprintf("These are too few nodes (%d) to compare them, so none is suspected.", all)
	}
	return fmt.Sprintf("The median of the %s is %s node faults. How many pods each node has run is not known: a node that runs many more "+
		"than others has more faults.", cli.Count(all, "node"), decimal(j.Median))
}

// chanceOf is a probability in few characters.
func chanceOf(probability float64) string {
	switch {
	case probability >= 0.995:
		return "100%"
	case probability >= 0.01:
		return percent(probability)
	case probability >= 0.0001:
		return strconv.FormatFloat(100*probability, 'f', 2, 64) + "%"
	}
	return "<0.01%"
}

func (n *nodes) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	lines := [][]string{{byNode, "runs", "infrastructure", "program", "other", "probability", "verdict"}}
	all, _ := n.evaluated()
	for i := range all {
		node := &all[i]
		lines = append(lines, []string{
			record.Cell(node.Name), strconv.Itoa(node.Runs), strconv.Itoa(node.Infrastructure), strconv.Itoa(node.Program),
			strconv.Itoa(node.Other), strconv.FormatFloat(node.Probability, 'g', 4, 64), string(node.Verdict),
		})
	}
	return out.WriteAll(lines)
}
