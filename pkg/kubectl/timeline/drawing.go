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
