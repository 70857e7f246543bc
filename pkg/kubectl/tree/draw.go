// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

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
