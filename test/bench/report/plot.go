// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

const (
	plotWidth   = 900
	plotLeft    = 280
	plotRight   = 90
	barHeight   = 16
	barGap      = 8
	panelHeader = 34
	plotFont    = "font-family=\"sans-serif\" font-size=\"12\""
)

// colors are the colors of the processes, the same in every plot.
var colors = map[string]string{
	"kube-apiserver": "#4e79a7", "etcd": "#a0cbe8", "kube-controller-manager": "#59a14f", "kube-scheduler": "#8cd17d",
	"kwok-controller": "#bab0ac", "jobset-apiserver": "#e15759", "jobset-etcd": "#ff9d9a", "jobset-controller": "#f28e2b",
}

// processes is the order of the parts of a bar.
var processes = []string{
	"kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler", "kwok-controller", "jobset-apiserver", "jobset-etcd",
	"jobset-controller",
}

// bar is one line of a panel: a phase, and what it is made of.
type bar struct {
	label    string
	parts    []part
	min, max float64
}

type part struct {
	value float64
	color string
}

// Plot draws a scenario as SVG: for each phase the wall time with its spread, the CPU time by process, the peak of memory
// of our programs, and what answers took.
func (s *Scenario) Plot() []byte {
	panels := []struct {
		title string
		bars  []bar
	}{
		{"wall time, s (line: smallest to largest)", s.bars("wall")},
		{"CPU time, s, by process", s.processBars("cpu", processes)},
		{"peak memory of our programs, MiB", s.processBars("peak", processes[5:])},
		{"median of a request, ms", append(s.bars("p50"), s.bars("decoded")...)},
		{"delivery of an event, ms", append(s.bars("delivery p50"), s.bars("delivery p99")...)},
	}
	var body bytes.Buffer
	y := 50
	for _, panel := range panels {
		if len(panel.bars) > 0 {
			y = drawPanel(&body, y, panel.title, panel.bars)
		}
	}
	y = drawLegend(&body, y)
	var out bytes.Buffer
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", plotWidth, y, plotWidth, y)
	fmt.Fprintf(&out, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n")
	fmt.Fprintf(&out, "<text x=\"16\" y=\"26\" font-family=\"sans-serif\" font-size=\"16\" font-weight=\"bold\">%s</text>\n",
		escape(fmt.Sprintf("%s (%s; median of %d)", s.Name, sizes(s.Sizes), s.Runs)))
	out.Write(body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

func (s *Scenario) bars(figure string) []bar {
	var bars []bar
	for _, p := range s.Phases {
		if f := p.Figure(figure); f != nil {
			label := p.Name
			if rank := strings.TrimPrefix(figure, "delivery "); rank != figure {
				label += " " + rank
			}
			bars = append(bars, bar{label: label, parts: []part{{f.Median, "#4e79a7"}}, min: f.Min, max: f.Max})
		}
	}
	return bars
}

// processBars have a part for each of the processes.
func (s *Scenario) processBars(kind string, processes []string) []bar {
	var bars []bar
	for _, p := range s.Phases {
		b := bar{label: p.Name}
		for _, process := range processes {
			if f := p.Figure(kind + "/" + process); f != nil {
				b.parts = append(b.parts, part{f.Median, colors[process]})
			}
		}
		if len(b.parts) > 0 {
			bars = append(bars, b)
		}
	}
	return bars
}

func (b bar) total() float64 {
	sum := 0.0
	for _, p := range b.parts {
		sum += p.value
	}
	return sum
}

// drawPanel returns where the next one may begin.
func drawPanel(out *bytes.Buffer, y int, title string, bars []bar) int {
	longest := 0.0
	for _, b := range bars {
		longest = max(longest, b.total(), b.max)
	}
	if longest == 0 {
		longest = 1
	}
	scale := float64(plotWidth-plotLeft-plotRight) / longest
	fmt.Fprintf(out, "<text x=\"16\" y=\"%d\" %s font-weight=\"bold\">%s</text>\n", y+18, plotFont, escape(title))
	y += panelHeader
	for _, b := range bars {
		fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" %s text-anchor=\"end\">%s</text>\n", plotLeft-8, y+13, plotFont, escape(b.label))
		x := float64(plotLeft)
		for _, p := range b.parts {
			fmt.Fprintf(out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", x, y, p.value*scale, barHeight, p.color)
			x += p.value * scale
		}
		if b.max > b.min {
			middle := y + barHeight/2
			fmt.Fprintf(out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"black\" stroke-width=\"2\"/>\n",
				plotLeft+b.min*scale, middle, plotLeft+b.max*scale, middle)
		}
		end := math.Max(x, plotLeft+b.max*scale)
		fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\" %s>%s</text>\n", end+6, y+13, plotFont, number(b.total()))
		y += barHeight + barGap
	}
	return y + barGap
}

func drawLegend(out *bytes.Buffer, y int) int {
	x := 16
	for i, process := range processes {
		if i == len(processes)/2 {
			x, y = 16, y+22
		}
		fmt.Fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, y+4, colors[process])
		fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" %s>%s</text>\n", x+18, y+14, plotFont, process)
		x += 200
	}
	return y + 34
}

func escape(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text)) // writing to memory does not fail
	return out.String()
}
