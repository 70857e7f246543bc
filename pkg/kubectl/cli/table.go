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
}

const (
	// gap is the room between columns.
	gap = 2
	// leastKept is the width down to which the columns that stay are shortened at last.
	leastKept = 6
)

// Table returns the header and one line for each row, with the cells of a column under each other. Cells may be painted. A row
// of one cell stands across all columns. No line is wider than the terminal: columns of text are cut, then the least important
// columns are left out, and at last names are shortened in their middle.
func (t Terminal) Table(columns []Column, rows [][]string) []string {
	shown := make([]int, len(columns))
	widths := make([]int, len(columns))
	header := make([]string, len(columns))
	for i := range columns {
		shown[i], widths[i], header[i] = i, Columns(columns[i].Title), t.Paint(Quiet, columns[i].Title)
	}
	empty := slices.Repeat([]bool{true}, len(columns))
	for _, row := range rows {
		for i, cell := range row {
			if len(row) > 1 {
				widths[i] = max(widths[i], Columns(cell))
				empty[i] = empty[i] && cell == ""
			}
		}
	}
	if t.Width > 0 {
		shown = t.fit(columns, widths, empty)
	}
	lines := make([]string, 0, len(rows)+1)
	for _, row := range append([][]string{header}, rows...) {
		lines = append(lines, t.row(columns, shown, widths, row))
	}
	return lines
}

// fit returns the columns that are shown, and changes the widths of those that have to be narrower.
func (t Terminal) fit(columns []Column, widths []int, empty []bool) []int {
	var shown []int
	for i := range columns {
		shown = append(shown, i)
	}
	leave := func(at int) { shown = slices.Delete(shown, at, at+1) }
	for wide(shown, widths) > t.Width {
		if at := slices.IndexFunc(shown, func(i int) bool { return empty[i] }); at >= 0 {
			leave(at)
			continue
		}
		// Columns of text give way, the last of them first.
		excess := wide(shown, widths) - t.Width
		for _, i := range slices.Backward(shown) {
			if least := columns[i].Least; least > 0 && widths[i] > least {
				excess -= widths[i] - least
			}
		}
		if excess <= 0 {
			t.narrow(columns, shown, widths)
			break
		}
		last := 0
		for at, i := range shown {
			if columns[i].Drop > columns[shown[last]].Drop {
				last = at
			}
		}
		if columns[shown[last]].Drop == 0 {
			shorten(shown, widths, t.Width)
			break
		}
		leave(last)
	}
	return shown
}

// narrow makes columns of text narrower, the last first, until the table fits.
func (t Terminal) narrow(columns []Column, shown, widths []int) {
	for _, i := range slices.Backward(shown) {
		excess := wide(shown, widths) - t.Width
		if least := columns[i].Least; least > 0 && excess > 0 {
			widths[i] = max(min(widths[i], least), widths[i]-excess)
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

func (t Terminal) row(columns []Column, shown, widths []int, row []string) string {
	if len(row) == 1 {
		return t.Cut(row[0])
	}
	var line strings.Builder
	for at, i := range shown {
		cell := ""
		if i < len(row) {
			cell = row[i]
		}
		if columns[i].Least > 0 {
			cell = t.cut(cell, widths[i])
		} else {
			cell = t.shorten(cell, widths[i])
		}
		if at < len(shown)-1 {
			cell = Pad(cell, widths[i]+gap)
		}
		line.WriteString(cell)
	}
	return t.Cut(strings.TrimRight(line.String(), " "))
}

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

// Align returns one line for each row, with the cells of a column under each other. Cells may be painted.
func Align(rows [][]string) []string {
	var columns []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(columns) {
				columns = append(columns, 0)
			}
			if len(row) > 1 {
				columns[i] = max(columns[i], Columns(cell))
			}
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i < len(row)-1 {
				cell = Pad(cell, columns[i]+gap)
			}
			line.WriteString(cell)
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}
