// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"math"
	"text/tabwriter"
)

const (
	curveLeft   = 70
	curveRight  = 190
	curveHeight = 260
	// curveSteps is how many parts the vertical axis has.
	curveSteps = 4
)

// partColors are the colors of the parts of the life of a set, in their order.
var partColors = []string{"#4e79a7", "#e15759", "#f28e2b", "#59a14f", "#b07aa1", "#9c755f"}

// curve is what each Job cost in one part of the life of a set: the medians, by number of Jobs.
type curve struct {
	part   string
	sizes  []int
	values []float64
}

func (s *Scenario) curves(figure string) (curves []curve) {
	for _, part := range s.growthParts() {
		c := curve{part: part}
		for _, jobs := range s.growthSizes(part) {
			if f := s.Phase(GrowthPhase(jobs, part)).Figure(figure); f != nil {
				c.sizes, c.values = append(c.sizes, jobs), append(c.values, f.Median)
			}
		}
		if len(c.sizes) > 0 {
			curves = append(curves, c)
		}
	}
	return curves
}

// PlotGrowth draws as SVG what each Job costs in sets of several sizes, with a logarithmic axis of sizes; nil if no
// part was measured with several. A horizontal line is linear growth.
func (s *Scenario) PlotGrowth() []byte {
	var body bytes.Buffer
	y := 50
	for _, figure := range growthFigures {
		if curves := s.curves(figure); len(curves) > 0 {
			y = drawCurves(&body, y, figure+", ms", curves)
		}
	}
	if y == 50 {
		return nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", plotWidth, y, plotWidth, y)
	fmt.Fprintf(&out, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n")
	fmt.Fprintf(&out, "<text x=\"16\" y=\"26\" font-family=\"sans-serif\" font-size=\"16\" font-weight=\"bold\">%s</text>\n",
		escape(fmt.Sprintf("%s, by Jobs of the set (median of %d)", s.Name, s.Runs)))
	out.Write(body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// axes are the scales of a panel.
type axes struct {
	top               int
	smallest, largest int
	highest           float64
}

func axesOf(top int, curves []curve) axes {
	a := axes{top: top, smallest: math.MaxInt}
	for _, c := range curves {
		a.smallest, a.largest = min(a.smallest, c.sizes[0]), max(a.largest, c.sizes[len(c.sizes)-1])
		for _, value := range c.values {
			a.highest = max(a.highest, value)
		}
	}
	if a.highest == 0 {
		a.highest = 1
	}
	return a
}

func (a axes) x(jobs int) float64 {
	width := float64(plotWidth - curveLeft - curveRight)
	if a.largest == a.smallest {
		return curveLeft + width/2
	}
	return curveLeft + width*math.Log(float64(jobs)/float64(a.smallest))/math.Log(float64(a.largest)/float64(a.smallest))
}

func (a axes) y(value float64) float64 { return float64(a.top) + curveHeight*(1-value/a.highest) }

// drawCurves returns where the next panel may begin.
func drawCurves(out *bytes.Buffer, y int, title string, curves []curve) int {
	fmt.Fprintf(out, "<text x=\"16\" y=\"%d\" %s font-weight=\"bold\">%s</text>\n", y+18, plotFont, escape(title))
	a := axesOf(y+plotLabel, curves)
	for step := range curveSteps + 1 {
		value := a.highest * float64(step) / curveSteps
		fmt.Fprintf(out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#dddddd\"/>\n", curveLeft, a.y(value), plotWidth-curveRight, a.y(value))
		fmt.Fprintf(out, "<text x=\"%d\" y=\"%.1f\" %s text-anchor=\"end\">%s</text>\n", curveLeft-8, a.y(value)+4, plotFont, number(value))
	}
	bottom := a.top + curveHeight
	marked := map[int]bool{}
	for i, c := range curves {
		color, points := partColors[i%len(partColors)], ""
		for at, jobs := range c.sizes {
			x, y := a.x(jobs), a.y(c.values[at])
			points += fmt.Sprintf("%.1f,%.1f ", x, y)
			fmt.Fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x, y, color)
			if !marked[jobs] {
				fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\" %s text-anchor=\"middle\">%d</text>\n", x, bottom+18, plotFont, jobs)
			}
			marked[jobs] = true
		}
		fmt.Fprintf(out, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", points, color)
		legend := a.top + i*22
		fmt.Fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", plotWidth-curveRight+24, legend, color)
		fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" %s>%s</text>\n", plotWidth-curveRight+42, legend+11, plotFont, escape(c.part))
	}
	return bottom + plotLabel
}

// plotLabel is the height of what is written above a panel and below it.
const plotLabel = 34

// GrowthTable has a row for each part of the life of a set, with what each Job costs in sets of each size and the ratio
// to the smallest; "" if growth was not measured.
func GrowthTable(scenarios []*Scenario) string {
	r := results{}
	for _, s := range scenarios {
		r[s.Name] = s
	}
	var out bytes.Buffer
	for _, s := range r.growths() {
		for _, figure := range growthFigures {
			if curves := s.curves(figure); len(curves) > 0 {
				fmt.Fprintf(&out, "\n%s: %s, ms, with the ratio to the smallest set (1 is linear)\n", s.Name, figure)
				writeCurves(&out, curves)
			}
		}
	}
	return out.String()
}

func writeCurves(out *bytes.Buffer, curves []curve) {
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range curves {
		fmt.Fprintf(columns, "  %s", c.part)
		for i, jobs := range c.sizes {
			fmt.Fprintf(columns, "\t%d Jobs: %s", jobs, number(c.values[i]))
			if i > 0 && c.values[0] != 0 {
				fmt.Fprintf(columns, " (%s)", number(c.values[i]/c.values[0]))
			}
		}
		fmt.Fprintln(columns)
	}
	_ = columns.Flush() // writing to memory does not fail
}
