// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Column is a column of a table.
type Column struct {
	// Title is its header.
	Title string
	// Drop is the order in which columns are left out of a table that is wider than the terminal: the highest first.
	// A column with 0 stays.
	Drop int
	// Least is the width down to which cells are cut at their end, before any column is left out. 0 means that they are not.
	Least int
	// Wrap means that nothing of a cell is lost: cells are broken into several lines where they would be cut, and stand in lines
	// of their own below their rows where the column would be left out. Requires Least.
	Wrap bool
	// Label is what a cell begins with that stands below its row.
	Label string
}

const (
	// gap is the room between columns.
	gap = 2
	// plainBranch is what further lines of a row begin with in a table that is no tree.
	plainBranch = "   "
	// leastKept is the width down to which the columns that stay are shortened at last.
	leastKept = 6
)

// Table returns the header and the lines of each row, with the cells of a column under each other. Cells may be painted. A row
// of one cell stands across all columns. No line is wider than the terminal: columns of text are cut or wrapped, then the least
// important columns are left out, and at last names are shortened in their middle.
func (t Terminal) Table(columns []Column, rows [][]string) []string {
	return t.Tree(columns, rows, nil)
}

// Tree is Table with what the further lines of each row begin with, for branches of a tree that go on beside them.
func (t Terminal) Tree(columns []Column, rows [][]string, branches []string) []string {
	l := t.layout(columns, rows)
	lines := make([]string, 0, len(rows)+1)
	lines = append(lines, l.header())
	for i, row := range rows {
		branch := plainBranch
		if branches != nil {
			branch = branches[i]
		}
		lines = append(lines, l.row(row, branch)...)
	}
	return lines
}

// layout is which columns of a table are shown, and how wide.
type layout struct {
	Terminal
	columns []Column
	widths  []int
	// shown are the columns that have room, and below those whose cells stand below the rows, by index.
	shown, below []int
}

func (t Terminal) layout(columns []Column, rows [][]string) *layout {
	l := &layout{Terminal: t, columns: columns, widths: make([]int, len(columns))}
	empty := slices.Repeat([]bool{true}, len(columns))
	for i := range columns {
		l.shown, l.widths[i] = append(l.shown, i), Columns(columns[i].Title)
	}
	for _, row := range rows {
		for i, cell := range row {
			if len(row) > 1 {
				l.widths[i] = max(l.widths[i], Columns(cell))
				empty[i] = empty[i] && cell == ""
			}
		}
	}
	if t.Width > 0 {
		l.fit(empty)
	}
	return l
}

// fit chooses the columns that are shown, and changes the widths of those that have to be narrower.
func (l *layout) fit(empty []bool) {
	columns, widths := l.columns, l.widths
	leave := func(at int) {
		if i := l.shown[at]; columns[i].Wrap && !empty[i] {
			l.below = append(l.below, i)
		}
		l.shown = slices.Delete(l.shown, at, at+1)
	}
	for wide(l.shown, widths) > l.Width {
		if at := slices.IndexFunc(l.shown, func(i int) bool { return empty[i] }); at >= 0 {
			leave(at)
			continue
		}
		// Columns of text give way, the last of them first.
		excess := wide(l.shown, widths) - l.Width
		for _, i := range slices.Backward(l.shown) {
			if least := columns[i].Least; least > 0 && widths[i] > least {
				excess -= widths[i] - least
			}
		}
		if excess <= 0 {
			l.narrow()
			break
		}
		last := 0
		for at, i := range l.shown {
			if columns[i].Drop > columns[l.shown[last]].Drop {
				last = at
			}
		}
		if columns[l.shown[last]].Drop == 0 {
			l.narrow()
			shorten(l.shown, widths, l.Width)
			break
		}
		leave(last)
	}
	slices.Sort(l.below)
}

// narrow makes columns of text narrower, the last first, until the table fits.
func (l *layout) narrow() {
	for _, i := range slices.Backward(l.shown) {
		excess := wide(l.shown, l.widths) - l.Width
		if least := l.columns[i].Least; least > 0 && excess > 0 {
			l.widths[i] = max(min(l.widths[i], least), l.widths[i]-excess)
		}
	}
}

// shorten makes the widest columns narrower until the table fits, or is as narrow as it can be.
func shorten(shown, widths []int, width int) {
	for wide(shown, widths) > width {
		widest := shown[0]
		for _, i := range shown {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= leastKept {
			return
		}
		widths[widest]--
	}
}

func wide(shown, widths []int) int {
	n := gap * (len(shown) - 1)
	for _, i := range shown {
		n += widths[i]
	}
	return n
}

// header is the line with the titles of the columns.
func (l *layout) header() string {
	titles := make([]string, len(l.columns))
	for i := range l.columns {
		titles[i] = l.Paint(Quiet, l.shorten(l.columns[i].Title, l.widths[i]))
	}
	return l.line(titles, "")
}

// row returns the lines of a row. All but the first begin with the branch.
func (l *layout) row(row []string, branch string) []string {
	if len(row) == 1 {
		text := strings.TrimLeft(row[0], " ")
		indent := row[0][:len(row[0])-len(text)]
		return l.Fold(text, indent, indent+"  ")
	}
	cells := make([][]string, len(l.columns))
	height := 1
	for _, i := range l.shown {
		if i < len(row) {
			cells[i] = l.cell(i, row[i])
			height = max(height, len(cells[i]))
		}
	}
	var lines []string
	for n := range height {
		texts := make([]string, len(l.columns))
		for i := range cells {
			if n < len(cells[i]) {
				texts[i] = cells[i][n]
			}
		}
		before := ""
		if n > 0 {
			before = branch
		}
		lines = append(lines, l.line(texts, before))
	}
	return append(lines, l.belowRow(row, branch)...)
}

// belowRow returns the lines of the cells that stand below their row.
func (l *layout) belowRow(row []string, branch string) (lines []string) {
	if l.Width > 0 && Columns(branch)+2+leastFolded > l.Width {
		branch = ""
	}
	for _, i := range l.below {
		if i < len(row) && row[i] != "" {
			lines = append(lines, l.Fold(l.columns[i].Label+row[i], branch, branch+"  ")...)
		}
	}
	return lines
}

// cell returns the lines of a cell, which are no wider than its column.
func (l *layout) cell(i int, text string) []string {
	switch column := &l.columns[i]; {
	case column.Wrap && l.Width > 0:
		return fold(text, "", "", l.widths[i], false)
	case column.Least > 0:
		return []string{l.cut(text, l.widths[i])}
	}
	return []string{l.shorten(text, l.widths[i])}
}

// line puts the cells of the columns that are shown side by side. A branch stands in the place of an empty first cell.
func (l *layout) line(cells []string, branch string) string {
	var line strings.Builder
	for at, i := range l.shown {
		cell := cells[i]
		if at == 0 && cell == "" && Columns(branch) <= l.widths[i]+gap {
			cell = branch
		}
		if at < len(l.shown)-1 {
			cell = Pad(cell, l.widths[i]+gap)
		}
		line.WriteString(cell)
	}
	return l.Cut(strings.TrimRight(line.String(), " "))
}

// Shorten takes out the middle of a text that is wider than so many columns: names of Jobs and pods differ at their end.
func (t Terminal) Shorten(text string, width int) string { return t.shorten(text, width) }

// shorten takes out the middle of a text that is too wide: names of Jobs and pods differ at their end.
func (t Terminal) shorten(text string, width int) string {
	all := Columns(text)
	if all <= width {
		return text
	}
	var out strings.Builder
	begin, end := (width-1)/2, all-(width-1-(width-1)/2)
	marked := false
	for at := 0; text != ""; {
		if sequence := escape(text); sequence != "" {
			out.WriteString(sequence)
			text = text[len(sequence):]
			continue
		}
		char, size := utf8.DecodeRuneInString(text)
		room := charWidths.RuneWidth(char)
		switch {
		case at+room <= begin || at >= end:
			out.WriteString(text[:size])
		case !marked:
			marked = true
			out.WriteString(t.Sign("…", "~"))
		}
		at += room
		text = text[size:]
	}
	return out.String()
}
