// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// screen is where the chart is drawn.
type screen struct {
	cli.Terminal
	// zone is the one whose clock the axis shows.
	zone *time.Location
}

// widths of the chart. The least is for terminals that are too narrow for anything; the default is for files.
const (
	leastWidth, defaultWidth, mostWidth = 20, 100, 160
	mostLabel                           = 26
)

// style is how a kind of phase looks.
type style struct {
	kind           Kind
	unicode, ascii rune
	color          cli.Color
}

var styles = []style{
	{Waiting, '·', '.', cli.Quiet},
	{Queued, '┄', ':', cli.Quiet},
	{Remote, '▬', 'o', cli.Good},
	{Suspended, '╌', '~', cli.Quiet},
	{Stopped, '×', 'x', cli.Bad},
	{Creating, '░', '-', cli.Busy},
	{Starting, '▒', '+', cli.Busy},
	{Running, '█', '=', cli.Good},
	{Failed, '▓', 'X', cli.Bad},
	{Updating, '▞', '/', cli.Busy},
	{Paused, '╌', '~', cli.Quiet},
	{Current, '━', '_', cli.Quiet},
}

// mark is how the end of a row looks.
type mark struct {
	outcome        string
	unicode, ascii rune
	color          cli.Color
}

var marks = []mark{
	{string(jobsetv1alpha2.OutcomeCompleted), '✓', '*', cli.Good},
	{string(jobsetv1alpha2.OutcomeFailed), '✗', '!', cli.Bad},
	{string(jobsetv1alpha2.OutcomeRestarted), '↻', '%', cli.Busy},
	{string(jobsetv1alpha2.OutcomeSuspended), '‖', '|', cli.Quiet},
	{string(jobsetv1alpha2.OutcomeCancelled), '■', '#', cli.Bad},
	{outcomeOpen, '▶', '>', ""},
}

// text returns the chart, its legend, and a table of the attempts.
func text(v View, s screen) string {
	d := v.drawing()
	b := &strings.Builder{}
	for _, sentence := range []string{fmt.Sprintf("%s %s/%s: %s", d.kind.Names[0], d.namespace, d.name, d.life), d.use} {
		if sentence != "" {
			lines(b, s.Fold(sentence, "", ""))
		}
	}
	if len(d.rows) > 0 {
		b.WriteString("\n")
		chart(b, d, s)
	}
	if d.table != nil {
		b.WriteString("\n")
		d.table(b, s)
	}
	if d.note != "" {
		b.WriteString("\n")
		lines(b, s.Fold(d.note, "", ""))
	}
	return b.String()
}

func (s screen) cut(text string, width int) string {
	s.Width = width
	return s.Cut(text)
}

func chart(b *strings.Builder, d *drawing, s screen) {
	lines := d.rows
	gutter := 0
	for _, r := range lines {
		gutter = max(gutter, cli.Columns(r.label))
	}
	width := s.Width
	if width == 0 {
		width = defaultWidth
	}
	// A space after the labels, and one column for the mark of a bar that reaches the end.
	gutter = min(gutter, mostLabel, max(0, width-leastWidth)) + 1
	columns := min(mostWidth, max(leastWidth/2, width-gutter-1))
	scale := d.scale()
	axis(b, scale, gutter, columns, s)
	for _, r := range lines {
		b.WriteString(strings.TrimRight(cli.Pad(s.Shorten(r.label, gutter-1), gutter)+bar(r, scale, columns, s), " "))
		b.WriteString("\n")
	}
	legend(b, lines, gutter, s)
}

// axis writes the labels of the ticks above a rule that has a notch for each.
func axis(b *strings.Builder, sc scale, gutter, columns int, s screen) {
	rule, notch := s.pick('─', '-'), s.pick('┬', '+')
	labels, line := []rune(strings.Repeat(" ", columns)), []rune(strings.Repeat(string(rule), columns))
	free := 0
	for _, t := range ticksFor(sc, columns, s.zone) {
		at := min(columns-1, int(sc.place(t.at)*float64(columns)))
		from := min(at, columns-len(t.label))
		if from < free {
			continue
		}
		line[at] = notch
		copy(labels[from:], []rune(t.label))
		free = from + len(t.label) + 2
	}
	zone := sc.begin.In(s.zone).Format("2006-01-02 MST")
	fmt.Fprintf(b, "%s%s\n", strings.Repeat(" ", gutter), s.Paint(cli.Quiet, s.cut(zone, columns)))
	fmt.Fprintf(b, "%s%s\n", strings.Repeat(" ", gutter), s.Paint(cli.Quiet, strings.TrimRight(string(labels), " ")))
	fmt.Fprintf(b, "%s%s\n", strings.Repeat(" ", gutter), s.Paint(cli.Quiet, string(line)))
}

// ticksFor returns as many ticks as there is room for.
func ticksFor(sc scale, columns int, zone *time.Location) []tick {
	const short, long = len("15:04:05") + 3, len("Jan 22 15:04") + 3
	out := ticks(sc.begin, sc.end, max(2, columns/short), zone)
	if len(out) > 0 && len(out[0].label) > short {
		out = ticks(sc.begin, sc.end, max(2, columns/long), zone)
	}
	return out
}

// bar draws a row. Every phase gets a column at least; where two share one, the later is drawn.
func bar(r row, sc scale, columns int, s screen) string {
	cells := make([]int, columns)
	last := 0
	for _, phase := range r.phases {
		from := min(columns-1, int(sc.place(phase.Begin)*float64(columns)))
		to := max(from+1, int(math.Round(sc.place(phase.End)*float64(columns))))
		i := slices.IndexFunc(styles, func(st style) bool { return st.kind == phase.Kind })
		for c := from; c < to; c++ {
			cells[c] = i + 1
		}
		last = max(last, to)
	}
	var b strings.Builder
	for c := 0; c < last; {
		end := c
		for end < last && cells[end] == cells[c] {
			end++
		}
		b.WriteString(s.run(cells[c], end-c))
		c = end
	}
	if i := markOf(r.outcome); i >= 0 {
		b.WriteString(s.Paint(marks[i].color, string(s.pick(marks[i].unicode, marks[i].ascii))))
	}
	return b.String()
}

// run draws cells that follow each other and are of one style; 0 is none.
func (s screen) run(cell, n int) string {
	if cell == 0 {
		return strings.Repeat(" ", n)
	}
	st := styles[cell-1]
	return s.Paint(st.color, strings.Repeat(string(s.pick(st.unicode, st.ascii)), n))
}

func (s screen) pick(unicode, ascii rune) rune {
	if s.ASCII {
		return ascii
	}
	return unicode
}

func markOf(outcome string) int {
	return slices.IndexFunc(marks, func(m mark) bool { return m.outcome == outcome })
}

// legend explains what was drawn, and nothing else.
func legend(b *strings.Builder, lines []row, gutter int, s screen) {
	kinds, outcomes := map[Kind]bool{}, map[string]bool{}
	for _, r := range lines {
		outcomes[r.outcome] = true
		for _, phase := range r.phases {
			kinds[phase.Kind] = true
		}
	}
	var items, plain []string
	add := func(color cli.Color, sign, word string) {
		items = append(items, s.Paint(color, sign)+" "+word)
		plain = append(plain, sign+" "+word)
	}
	for _, st := range styles {
		if kinds[st.kind] {
			add(st.color, string(s.pick(st.unicode, st.ascii)), string(st.kind))
		}
	}
	for _, m := range marks {
		if outcomes[m.outcome] {
			word := strings.ToLower(m.outcome)
			if m.outcome == outcomeOpen {
				word = "still running"
			}
			add(m.color, string(s.pick(m.unicode, m.ascii)), word)
		}
	}
	if len(items) == 0 {
		return
	}
	writeItems(b, items, plain, gutter, s)
}

// writeItems writes the items side by side, after the gutter. It goes on in the next line where one is full.
func writeItems(b *strings.Builder, items, plain []string, gutter int, s screen) {
	b.WriteString(strings.Repeat(" ", gutter))
	used := gutter
	for i := range items {
		length := cli.Columns(plain[i])
		switch {
		case i == 0:
		case s.Width > 0 && used+2+length > s.Width:
			b.WriteString("\n" + strings.Repeat(" ", gutter))
			used = gutter
		default:
			b.WriteString("  ")
			used += 2
		}
		b.WriteString(items[i])
		used += length
	}
	b.WriteString("\n")
}
