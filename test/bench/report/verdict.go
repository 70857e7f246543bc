// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"math"
	"text/tabwriter"
)

// Verdict is a figure made of ratios of each round, which the programs must keep to if it has a limit.
type Verdict struct {
	Figure string `json:"figure"`
	// How describes which figure is divided by which.
	How string `json:"how"`
	// Value is the median of the rounds.
	Value float64 `json:"value"`
	// Low and High are the spread of the rounds (see Spread), Rounds is their number; 0 if there are none that belong together.
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
	// Limit is what the value is at most, or at least if AtLeast is true; -1 for a figure without a limit, which explains others.
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"atLeast,omitempty"`
	Unit    string  `json:"unit,omitempty"`
	// Known is false if something that it is made of was not measured.
	Known   bool    `json:"known"`
	Outcome Outcome `json:"outcome"`
}

// Outcome is what a verdict says.
type Outcome string

// Outcomes of verdicts.
const (
	// Kept and Missed are said of values whose rounds spread less than the margin between the value and the limit.
	Kept   Outcome = "ok"
	Missed Outcome = "missed"
	// Undecided values spread by more than the margin, or are times of one round, whose spread is not known.
	Undecided   Outcome = "undecided"
	ToCompare   Outcome = "to compare"
	NotMeasured Outcome = "not measured"
)

// newVerdict compares a quantity with a limit.
func newVerdict(figure, unit string, limit float64, atLeast bool, q quantity) Verdict {
	v := Verdict{Figure: figure, How: q.text, Limit: limit, AtLeast: atLeast, Unit: unit, Known: q.known, Outcome: NotMeasured}
	if !q.known {
		return v
	}
	v.Value, v.Rounds = q.value, len(q.rounds)
	v.Low, v.High = q.value, q.value
	if v.Rounds > 0 {
		v.Low, v.High = Spread(q.rounds)
	}
	margin, kept := limit-v.Value, v.Value <= limit
	if atLeast {
		margin, kept = v.Value-limit, v.Value >= limit
	}
	switch {
	case limit == noLimit:
		v.Outcome = ToCompare
	case q.timed && v.Rounds < 2, v.High-v.Low > math.Abs(margin):
		v.Outcome = Undecided
	case kept:
		v.Outcome = Kept
	default:
		v.Outcome = Missed
	}
	return v
}

// noLimit is the limit of a figure without one.
const noLimit = -1

// results are the scenarios by name.
type results map[string]*Scenario

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
	r.addGrowth(add)
	r.addManySets(add)
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
	for _, phase := range []string{"create", "update", "restart of one group", ScaleUp, ScaleDown} {
		limit := 1.3
		if phase == ScaleUp || phase == ScaleDown {
			limit = noLimit
		}
		for _, figure := range []string{"cpu/total", "wall"} {
			of := func(kind string) quantity { return r.median("leaderworkersets", kind+": "+phase, figure) }
			add("leaderworkersets: "+figure+" of "+phase+" / the same pods in StatefulSets", "", limit, of("groups").over(of("statefulsets")))
		}
	}
	add("leaderworkersets: writes while groups are at rest", "", 0, r.restWrites())
}

// restWrites is the number of writes of jobset-controller while groups are at rest.
func (r results) restWrites() quantity {
	sum := r.called("leaderworkersets", "at rest", "wall")
	sum.value, sum.rounds, sum.timed, sum.text = 0, nil, false, "leaderworkersets: at rest: writes of jobset-controller"
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
	of := r.median
	var verdicts []Verdict
	add := func(figure, unit string, limit float64, q quantity) {
		verdicts = append(verdicts, newVerdict(figure, unit, limit, false, q))
	}
	r.addSets(add)
	r.addUpstream(add)
	add("write: create p50 of a JobSet / of a ConfigMap", "", 2,
		of("write", "create jobsets", "p50").over(of("write", "create configmaps", "p50")))
	add("list 2,000: protobuf bytes / JSON bytes", "", 0.5,
		of("list", "2000: cache protobuf", "bytes").over(of("list", "2000: cache json", "bytes")))
	add("list 2,000 from cache: protobuf time / JSON time", "", 0.4,
		of("list", "2000: cache protobuf", "decoded").over(of("list", "2000: cache json", "decoded")))
	add("run: writes to a JobSet over its life", "", 4, of("run", completed, "writes to each set"))
	add("bytes of JobSets in the etcd of kube-apiserver", UnitBytes, 0, r.highest("stored/etcd/jobset bytes"))
	add("wide: memory of the controller for each Job", UnitKiB, 15, of("wide", "create", "memory of jobset-controller for each Job"))
	r.addSequences(add)
	r.addLabeled(add)
	return append(verdicts, r.placeRates()...)
}

// VerdictTable prints the verdicts, and how each was computed.
func VerdictTable(verdicts []Verdict) string {
	var out bytes.Buffer
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "FIGURE\tMEASURED\tSPREAD (ROUNDS)\tTARGET\tVERDICT")
	for _, v := range verdicts {
		is, spread, limit := number(v.Value)+" "+v.Unit, "", number(v.Limit)+" "+v.Unit
		if v.Rounds > 1 {
			spread = fmt.Sprintf("%s - %s (%d)", number(v.Low), number(v.High), v.Rounds)
		}
		if v.AtLeast {
			limit = ">= " + limit
		}
		if v.Limit == noLimit {
			limit = ""
		}
		if !v.Known {
			is = "-"
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\n", v.Figure, is, spread, limit, v.Outcome)
	}
	_ = columns.Flush() // writing to memory does not fail
	fmt.Fprintln(&out, "\nA verdict is undecided if the spread is larger than the distance to the target, or if a time was measured in one round only. The spread is from the first to the")
	fmt.Fprintln(&out, "third quartile of four rounds and more, otherwise from the smallest to the largest.")
	fmt.Fprintln(&out, "\nHow each is computed, in each round; the measured value is the median:")
	for _, v := range verdicts {
		fmt.Fprintf(&out, "  %s = %s\n", v.Figure, v.How)
	}
	return out.String()
}
