// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// item is one line of the tree with what is below it.
type item struct {
	name, state, ready, restarts, age, node, message string
	// revision is for the trees that have a column of it.
	revision string
	// domain is for the trees of sets with exclusive placement.
	domain string

	severity severity
	children []item
}

// columns are the columns of the tree. Where there is little room, state and message are worth more than the others.
// Nothing of the message is cut: it stands below the line at last.
var columns = []cli.Column{
	{Title: "NAME"}, {Title: "STATE"}, {Title: "READY"},
	{Title: "RESTARTS", Drop: 3}, {Title: "AGE", Drop: 4}, {Title: "NODE", Drop: 1}, {Title: "MESSAGE", Drop: 2, Least: 24, Wrap: true},
}

func colorOf(it *item) cli.Color {
	switch {
	case it.state == snapshot.JobSuspended, it.state == Missing, it.state == Removed, it.severity == leaving:
		return cli.Quiet
	case it.severity == well:
		return cli.Good
	case it.severity >= stuck:
		return cli.Bad
	}
	return cli.Busy
}

func age(now time.Time, then *metav1.Time) string {
	if then == nil || then.IsZero() {
		return ""
	}
	return cli.Duration(now.Sub(then.Time))
}

func of(part, whole int) string { return fmt.Sprintf("%d/%d", part, whole) }

// drawing are the rows of a tree.
type drawing struct {
	cli.Terminal
	rows [][]string
	// branches are what further lines of the rows begin with.
	branches []string
}

// draw returns the rows of an item and of those below it.
func draw(terminal cli.Terminal, top *item) *drawing {
	d := &drawing{Terminal: terminal}
	d.add(top, "", "")
	return d
}

// add adds the rows of an item and of those below it. The first begins with own, the others with below.
func (d *drawing) add(it *item, own, below string) {
	name := d.Paint(cli.Quiet, own) + it.name
	d.rows = append(d.rows, []string{name, d.Paint(colorOf(it), it.state), it.ready, it.restarts, it.age, it.node, it.message})
	branch, next := d.Sign("├─ ", "|- "), d.Sign("│  ", "|  ")
	beside := below + "   "
	if len(it.children) > 0 {
		beside = below + next
	}
	d.branches = append(d.branches, d.Paint(cli.Quiet, beside))
	for i := range it.children {
		if i == len(it.children)-1 {
			branch, next = d.Sign("└─ ", "`- "), "   "
		}
		d.add(&it.children[i], below+branch, below+next)
	}
}

// insert adds a column.
func (d *drawing) insert(at int, cells []string) {
	for i, cell := range cells {
		d.rows[i] = slices.Insert(d.rows[i], at, cell)
	}
}

func (d *drawing) lines(columns []cli.Column) []string { return d.Tree(columns, d.rows, d.branches) }
