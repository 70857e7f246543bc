// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"math"
	"text/tabwriter"
)

// Verdict is a figure made of medians of one run, which the programs must keep to if it has a limit.
type Verdict struct {
	Figure string `json:"figure"`
	// How describes which figure is divided by which.
	How   string  `json:"how"`
	Value float64 `json:"value"`
	// Limit is what the value is at most, or at least if AtLeast is true; -1 for a figure without a limit, which explains others.
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"atLeast,omitempty"`
	Unit    string  `json:"unit,omitempty"`
	// Known is false if something that it is made of was not measured.
	Known bool `json:"known"`
	// Kept is whether the value keeps to the limit.
	Kept bool `json:"kept"`
}

// noLimit is the limit of a figure without one.
const noLimit = -1

// quantity is the median of a figure, or not known.
type quantity struct {
	value float64
	known bool
	text  string
}

// results are the scenarios by name.
type results map[string]*Scenario

func (r results) median(scenario, phase, figure string) quantity {
	q := quantity{text: scenario + ": " + phase + ": " + figure}
	s := r[scenario]
	if s == nil {
		return q
	}
	for _, p := range s.Phases {
		if f := p.Figure(figure); p.Name == phase && f != nil {
			q.value, q.known = f.Median, true
		}
	}
	return q
}

// size is one of the sizes that a scenario had.
func (r results) size(scenario, name string) quantity {
	q := quantity{text: scenario + ": " + name}
	if s := r[scenario]; s != nil {
		q.value, q.known = float64(s.Sizes[name]), s.Sizes[name] > 0
	}
	return q
}

func (q quantity) over(other quantity) quantity {
	return quantity{
		value: q.value / other.value, known: q.known && other.known && other.value != 0,
		text: fmt.Sprintf("(%s) / (%s)", q.text, other.text),
	}
}

func (q quantity) times(other quantity) quantity {
	return quantity{
		value: q.value * other.value, known: q.known && other.known, text: fmt.Sprintf("(%s) x (%s)", q.text, other.text),
	}
}

// highest is the largest value of a figure in all phases of all scenarios.
func (r results) highest(figure string) quantity {
	q := quantity{text: "largest of all phases: " + figure, value: math.Inf(-1)}
	for _, s := range r {
		for _, p := range s.Phases {
			if f := p.Figure(figure); f != nil {
				q.value, q.known = max(q.value, f.Max), true
			}
		}
	}
	return q
}

// addSequences adds the figures of sequences, of pod groups and of LeaderWorkerSets.
func (r results) addSequences(add func(figure, unit string, limit float64, q quantity)) {
	for _, figure := range []string{"cpu/total", "wall"} {
		of := func(phase string) quantity { return r.median("sequences", phase, figure) }
		add("sequences: "+figure+" / Jobs one after another by a client", "", noLimit, of("steps by a sequence").over(of("steps by a client")))
		add("sequences: "+figure+" of a set as a step / of the set alone", "", noLimit, of("a set as a step").over(of("a set alone")))
	}
	add("sequences: writes to a sequence over its life, for each step", "", noLimit,
		r.median("sequences", "steps by a sequence", "writes to each sequence").over(r.size("sequences", "steps")))
	for _, program := range []string{"jobset-controller", "jobset-apiserver"} {
		add("sequences: memory of "+program+" for each sequence", UnitKiB, noLimit,
			r.median("sequences", "at rest", "memory of "+program+" for each sequence"))
	}
	r.addGroups(add)
	r.addServing(add)
	r.addPlace(add)
	r.addInPlace(add)
}

// addGroups adds the figures of pod groups.
func (r results) addGroups(add func(figure, unit string, limit float64, q quantity)) {
	of := func(phase, figure string) quantity { return r.median("groups", phase, figure) }
	pods := r.size("groups", "groups").times(r.size("groups", "pods of each"))
	add("groups: patches for each pod", "", 1, of("groups: label", "client/jobset-controller/patch pods").over(pods))
	for _, figure := range []string{"CPU of jobset-controller for each pod", "CPU of all programs for each pod"} {
		add("groups: "+figure+" / with few groups", "", noLimit, of("groups: label", figure).over(of("few groups: label", figure)))
	}
	add("groups: writes to each group while its pods start", "", noLimit, of("groups: start", "writes to each group"))
}

// addServing adds the figures of LeaderWorkerSets.
func (r results) addServing(add func(figure, unit string, limit float64, q quantity)) {
	for _, phase := range []string{"create", "update", "restart of one group"} {
		for _, figure := range []string{"cpu/total", "wall"} {
			of := func(kind string) quantity { return r.median("leaderworkersets", kind+": "+phase, figure) }
			add("leaderworkersets: "+figure+" of "+phase+" / the same pods in StatefulSets", "", 1.3, of("groups").over(of("statefulsets")))
		}
	}
	add("leaderworkersets: writes while groups are at rest", "", 0, r.restWrites())
}

// restWrites is the number of writes of jobset-controller while groups are at rest.
func (r results) restWrites() quantity {
	sum := r.called("leaderworkersets", "at rest", "wall")
	sum.value, sum.text = 0, "leaderworkersets: at rest: writes of jobset-controller"
	for _, call := range servingWrites() {
		sum.value += r.called("leaderworkersets", "at rest", "client/jobset-controller/"+call).value
	}
	return sum
}

// servingWrites are the writes that the controller makes for LeaderWorkerSets, events aside.
func servingWrites() (calls []string) {
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		for _, resource := range []string{"statefulsets", "services", "pods", "controllerrevisions", "leaderworkersets/status"} {
			calls = append(calls, verb+" "+resource)
		}
	}
	return calls
}

// Verdicts compares the results with what they must be at most.
func Verdicts(scenarios []*Scenario) []Verdict {
	r := results{}
	for _, s := range scenarios {
		r[s.Name] = s
	}
	of := func(scenario, phase, figure string) quantity { return r.median(scenario, phase, figure) }
	ratio := func(phase, figure string) quantity { return of("big", phase, figure).over(of("floor", phase, figure)) }
	const completed = "until completed"
	var verdicts []Verdict
	add := func(figure, unit string, limit float64, q quantity) {
		v := Verdict{Figure: figure, How: q.text, Limit: limit, Unit: unit, Known: q.known}
		if q.known {
			v.Value, v.Kept = q.value, limit == noLimit || q.value <= limit
		}
		verdicts = append(verdicts, v)
	}
	add("big start: CPU / floor start", "", 1.25, ratio("start", "cpu/total"))
	add("big start: wall / floor start", "", 1.25, ratio("start", "wall"))
	add("big restart: CPU / floor restart", "", 1.25, ratio("restart", "cpu/total"))
	add("big restart: wall from the failure of the Job / floor restart", "", 1.2,
		of("big", "restart", "wall from the failure of the Job").over(of("floor", "restart", "wall")))
	add("write: create p50 of a JobSet / of a ConfigMap", "", 2,
		of("write", "create jobsets", "p50").over(of("write", "create configmaps", "p50")))
	add("list 2,000: protobuf bytes / JSON bytes", "", 0.5,
		of("list", "2000: cache protobuf", "bytes").over(of("list", "2000: cache json", "bytes")))
	add("list 2,000 from cache: protobuf time / JSON time", "", 0.4,
		of("list", "2000: cache protobuf", "decoded").over(of("list", "2000: cache json", "decoded")))
	startOfOne := of("floor", "start", "cpu/total").over(r.size("floor", "jobs"))
	runOfOne := of("run", completed, "cpu/total").over(r.size("run", "sets").times(r.size("run", "jobs of each")))
	add("run: CPU per Job / floor start per Job", "", 2, runOfOne.over(startOfOne))
	add("run: writes to a JobSet over its life", "", 4, of("run", completed, "writes to each set"))
	add("bytes of JobSets in the etcd of kube-apiserver", UnitBytes, 0, r.highest("stored/etcd/jobset bytes"))
	add("wide: memory of the controller for each Job", UnitKiB, 15, of("wide", "create", "memory of jobset-controller for each Job"))
	r.addSequences(add)
	for _, phase := range []string{"start", "restart"} {
		wall := "wall"
		if phase == "restart" {
			wall = "wall from the failure of the Job"
		}
		labeled := func(figure string) quantity { return of("labeled-jobs", phase, figure) }
		add("labeled-jobs "+phase+": CPU / floor "+phase, "", noLimit, labeled("cpu/total").over(of("floor", phase, "cpu/total")))
		add("labeled-jobs "+phase+": wall / floor "+phase, "", noLimit, labeled("wall").over(of("floor", phase, "wall")))
		add("big "+phase+": CPU / labeled-jobs "+phase, "", noLimit, of("big", phase, "cpu/total").over(labeled("cpu/total")))
		add("big "+phase+": wall / labeled-jobs "+phase, "", noLimit, of("big", phase, wall).over(labeled("wall")))
	}
	for _, name := range []string{"floor", "labeled-jobs"} {
		lifeOfOne := of(name, completed, "cpu/total").over(r.size(name, "jobs until completed"))
		add(name+" until completed: CPU per Job / floor start per Job", "", noLimit, lifeOfOne.over(startOfOne))
		add("run: CPU per Job / "+name+" until completed per Job", "", noLimit, runOfOne.over(lifeOfOne))
	}
	return append(verdicts, r.placeRates()...)
}

// VerdictTable prints the verdicts, and how each was computed.
func VerdictTable(verdicts []Verdict) string {
	var out bytes.Buffer
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "FIGURE\tMEASURED\tTARGET\tVERDICT")
	for _, v := range verdicts {
		is, limit, verdict := number(v.Value)+" "+v.Unit, number(v.Limit)+" "+v.Unit, "missed"
		if v.AtLeast {
			limit = ">= " + limit
		}
		if v.Limit == noLimit {
			limit, verdict = "", "to compare"
		}
		switch {
		case !v.Known:
			is, verdict = "-", "not measured"
		case v.Kept && v.Limit != noLimit:
			verdict = "ok"
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", v.Figure, is, limit, verdict)
	}
	_ = columns.Flush() // writing to memory does not fail
	fmt.Fprintln(&out, "\nHow each is computed, of medians of this run:")
	for _, v := range verdicts {
		fmt.Fprintf(&out, "  %s = %s\n", v.Figure, v.How)
	}
	return out.String()
}
