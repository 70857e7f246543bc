// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// View is the timeline of an object. As data, it is the object itself; chart and page are made from its drawing.
type View interface {
	drawing() *drawing
}

// drawing is what chart and page show.
type drawing struct {
	kind            cli.Kind
	name, namespace string
	// life says what became of the object, and use of how much use it was; empty for nothing to say.
	life, use, note string
	// parts are what has rows, in the title of the chart.
	parts string
	// begin and end are the times at which the chart begins and ends.
	begin, end time.Time
	finished   bool
	rows       []row
	// table writes the table below the chart, and fill puts it into the page.
	table func(*strings.Builder, screen)
	fill  func(*view, *time.Location)
}

// drawing implements View.
func (t *Timeline) drawing() *drawing {
	d := &drawing{
		kind: cli.JobSet, name: t.JobSet, namespace: t.Namespace, life: state(t), use: use(t), note: t.Note, parts: "Attempts",
		begin: t.Begin, end: t.End, finished: t.Finished, rows: rows(t),
		fill: func(v *view, zone *time.Location) {
			for i := range t.Attempts {
				v.Attempts = append(v.Attempts, viewAttemptOf(&t.Attempts[i], zone))
			}
		},
	}
	if len(t.Attempts) > 0 {
		d.table = func(b *strings.Builder, s screen) { table(b, t, s) }
	}
	d.span(t.Jobs)
	return d
}

// span widens the chart to the lanes.
func (d *drawing) span(lanes []Lane) {
	for _, lane := range lanes {
		d.begin, d.end = sooner(d.begin, lane.Begin), later(d.end, lane.End)
	}
}

// scale leaves room for the shortest life, which would have no width.
func (d *drawing) scale() scale {
	if d.end.Sub(d.begin) < time.Second {
		return scale{d.begin, d.begin.Add(time.Second)}
	}
	return scale{d.begin, d.end}
}

// tick is a time on the axis that is easy to read.
type tick struct {
	at    time.Time
	label string
}

// steps are the distances between ticks, from which the shortest one is taken that leaves room for the labels.
var steps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day, 364 * day,
}

const day = 24 * time.Hour

// ticks returns at most this many ticks between two times, on the clock of the zone.
func ticks(begin, end time.Time, most int, zone *time.Location) []tick {
	begin, end = begin.In(zone), end.In(zone)
	step := steps[len(steps)-1]
	for _, s := range steps {
		if end.Sub(begin) <= s*time.Duration(max(1, most-1)) {
			step = s
			break
		}
	}
	layout := layoutOf(begin, end, step)
	// From the midnight before, so that ticks are at round hours of the zone.
	at := time.Date(begin.Year(), begin.Month(), begin.Day(), 0, 0, 0, 0, zone)
	if before := begin.Sub(at); step < day {
		at = at.Add(before.Truncate(step))
	}
	var out []tick
	for ; !at.After(end); at = next(at, step) {
		if !at.Before(begin) {
			out = append(out, tick{at: at, label: at.Format(layout)})
		}
	}
	return out
}

// next counts days by the calendar: with a change of the clock they are not 24 hours long.
func next(at time.Time, step time.Duration) time.Time {
	if step >= day {
		return at.AddDate(0, 0, int(step/day))
	}
	return at.Add(step)
}

func layoutOf(begin, end time.Time, step time.Duration) string {
	switch {
	case step >= day:
		return "Jan 2"
	case begin.YearDay() != end.YearDay() || begin.Year() != end.Year():
		return "Jan 2 15:04"
	case step < time.Minute:
		return "15:04:05"
	}
	return "15:04"
}

// scale maps times to places from 0 to 1.
type scale struct{ begin, end time.Time }

func (s scale) place(at time.Time) float64 {
	return min(1, max(0, float64(at.Sub(s.begin))/float64(s.end.Sub(s.begin))))
}
