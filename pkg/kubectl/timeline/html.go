// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	_ "embed" // for the page
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// Sizes of the drawing in pixels. Places along the time are in percent, so that the drawing is as wide as the window.
const (
	rowHeight, barOffset, barHeight = 50, 22, 18
	axisHeight                      = 34
	// mostTicks have room on a telephone, longTicks if they have dates.
	mostTicks, longTicks = 6, 4
	// leastBar is the width of a phase that would be too short to see, in percent.
	leastBar = 0.4
)

// view is what the page shows.
type view struct {
	Kind, Name, Namespace, Note string
	Parts                       string
	Finished                    bool
	Life, Use, Zone, From, To   string
	Height, Bottom              int
	Ticks                       []viewTick
	Rows                        []viewRow
	Legend                      []Kind
	Attempts                    []viewAttempt
	Steps                       []viewStep
	Revisions                   []viewRevision
	Replicas                    []viewReplica
	BarHeight, AxisHeightTop    int
}

type viewTick struct {
	X, Label, Anchor string
}

type viewRow struct {
	Label, Detail, Outcome string
	LabelY, BarY           int
	Bars                   []viewBar
}

type viewBar struct {
	Kind        Kind
	X, W, Title string
}

type viewAttempt struct {
	Number                                           int32
	Trigger, Reason, Began, ReadyIn, Lasted, Outcome string
	FirstCause, EndedBy, OutcomeClass, EndReason     string
	KeptOff                                          string
}

// Page writes the timeline as one page of HTML that needs nothing else: no network, no script.
func Page(w io.Writer, t View, zone *time.Location) error {
	if err := pageTemplate.Execute(w, viewOf(t.drawing(), zone)); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func viewOf(d *drawing, zone *time.Location) *view {
	sc := d.scale()
	v := &view{
		Kind: d.kind.Names[0], Name: d.name, Namespace: d.namespace, Note: d.note, Parts: d.parts, Finished: d.finished, Life: d.life, Use: d.use,
		BarHeight: barHeight, AxisHeightTop: axisHeight,
		Zone: sc.begin.In(zone).Format("MST"), From: clock(d.begin, zone), To: clock(d.end, zone),
	}
	axis := ticks(sc.begin, sc.end, mostTicks, zone)
	if len(axis) > 0 && len(axis[0].label) > len("15:04:05") {
		axis = ticks(sc.begin, sc.end, longTicks, zone)
	}
	for _, at := range axis {
		v.Ticks = append(v.Ticks, viewTick{X: percent(sc.place(at.at)), Label: at.label, Anchor: anchor(sc.place(at.at))})
	}
	y := axisHeight
	shown := map[Kind]bool{}
	for _, r := range d.rows {
		row := viewRow{Label: r.label, Detail: r.detail, Outcome: r.outcome, LabelY: y + 16, BarY: y + barOffset}
		for _, phase := range r.phases {
			row.Bars = append(row.Bars, viewBarOf(r, phase, sc, zone))
			shown[phase.Kind] = true
		}
		v.Rows = append(v.Rows, row)
		y += rowHeight
	}
	v.Height, v.Bottom = y, y-4
	for _, st := range styles {
		if shown[st.kind] {
			v.Legend = append(v.Legend, st.kind)
		}
	}
	d.fill(v, zone)
	return v
}

func viewBarOf(r row, phase Phase, sc scale, zone *time.Location) viewBar {
	from, to := 100*sc.place(phase.Begin), 100*sc.place(phase.End)
	width := max(leastBar, to-from)
	from = min(from, 100-width)
	what := string(phase.Kind)
	if r.label != what {
		what = r.label + ": " + what
	}
	until := clock(phase.End, zone)
	if phase.Open {
		until = "now"
	}
	return viewBar{
		Kind: phase.Kind, X: fmt.Sprintf("%.3f%%", from), W: fmt.Sprintf("%.3f%%", width),
		Title: fmt.Sprintf("%s, %s (%s to %s)", what, cli.Seconds(phase.End.Sub(phase.Begin).Seconds()), clock(phase.Begin, zone), until),
	}
}

func viewAttemptOf(a *Attempt, zone *time.Location) viewAttempt {
	out := viewAttempt{
		Number: a.Number, Trigger: triggerOf(a), Reason: cli.Clean(a.Reason), ReadyIn: readyIn(a), Lasted: cli.Seconds(a.Seconds),
		Outcome: outcomeOf(a), OutcomeClass: strings.ToLower(outcomeOf(a)), EndedBy: cli.Clean(a.EndUser), EndReason: cli.Clean(a.EndReason),
	}
	if a.RequestTime != nil {
		out.Began = clock(a.RequestTime.Time, zone)
	}
	if a.FirstCause != nil {
		out.FirstCause = causeOf(a.FirstCause)
	}
	out.KeptOff = avoidedOf(a)
	return out
}

func clock(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("2006-01-02 15:04:05")
}

func percent(place float64) string { return fmt.Sprintf("%.3f%%", 100*place) }

// anchor keeps the labels of ticks at the ends inside of the drawing.
func anchor(place float64) string {
	switch {
	case place < 0.08:
		return "start"
	case place > 0.92:
		return "end"
	}
	return "middle"
}
