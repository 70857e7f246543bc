// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// variantMark is between the name of a scenario and that of the variant of its sets.
const variantMark = "+"

// VariantName is the name of a scenario with sets that are created in another way, such as "big+compact".
func VariantName(scenario, variant string) string { return scenario + variantMark + variant }

// target is what sets cost at most beside bare Jobs.
type target struct {
	// start and restart are for CPU times, and start for its wall time too; restartWall is for wall time, run for the CPU
	// time of a Job until it is completed, beside that of the start of a bare Job.
	start, restart, restartWall, run float64
}

// targets are the targets of variants on a stock cluster. Sets without a variant have none: where
// kube-controller-manager writes the endpoints, they cost what those cost.
var targets = map[string]target{
	"endpoints":         {1.35, 1.35, 1.15, 2.2},
	"endpoints-compact": {1.2, 1.2, 1.15, 2.2},
}

// variants returns the names of the variants that were measured, after the empty one.
func (r results) variants() []string {
	names := map[string]bool{"": true}
	for name := range r {
		if _, variant, found := strings.Cut(name, variantMark); found && variant != Upstream {
			names[variant] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// sets returns the name of a scenario with the sets of a variant.
func sets(scenario, variant string) string {
	if variant == "" {
		return scenario
	}
	return VariantName(scenario, variant)
}

const (
	completed   = "until completed"
	failureWall = "wall from the failure of the Job"
)

// addSets adds what sets of each variant cost beside bare Jobs.
func (r results) addSets(add func(figure, unit string, limit float64, q quantity)) {
	of := r.median
	startOfOne := of("floor", "start", "cpu/total").over(r.size("floor", "jobs"))
	for _, variant := range r.variants() {
		most, found := targets[variant]
		if !found {
			most = target{noLimit, noLimit, noLimit, noLimit}
		}
		big, run := sets("big", variant), sets("run", variant)
		add(big+" start: CPU / floor start", "", most.start, of(big, "start", "cpu/total").over(of("floor", "start", "cpu/total")))
		add(big+" start: wall / floor start", "", most.start, of(big, "start", "wall").over(of("floor", "start", "wall")))
		add(big+" restart: CPU / floor restart", "", most.restart, of(big, "restart", "cpu/total").over(of("floor", "restart", "cpu/total")))
		add(big+" restart: "+failureWall+" / floor restart", "", most.restartWall, of(big, "restart", failureWall).over(of("floor", "restart", "wall")))
		runOfOne := of(run, completed, "cpu/total").over(r.size(run, "sets").times(r.size(run, "jobs of each")))
		add(run+": CPU per Job / floor start per Job", "", most.run, runOfOne.over(startOfOne))
		add(run+": wall / floor until completed", "", noLimit, of(run, completed, "wall").over(of("floor", completed, "wall")))
	}
}

// addLabeled adds what the labels and annotations of Jobs of sets cost, and what sets cost beside Jobs that have them.
func (r results) addLabeled(add func(figure, unit string, limit float64, q quantity)) {
	of := r.median
	for _, phase := range []string{"start", "restart"} {
		wall := "wall"
		if phase == "restart" {
			wall = failureWall
		}
		labeled := func(figure string) quantity { return of("labeled-jobs", phase, figure) }
		add("labeled-jobs "+phase+": CPU / floor "+phase, "", noLimit, labeled("cpu/total").over(of("floor", phase, "cpu/total")))
		add("labeled-jobs "+phase+": wall / floor "+phase, "", noLimit, labeled("wall").over(of("floor", phase, "wall")))
		add("big "+phase+": CPU / labeled-jobs "+phase, "", noLimit, of("big", phase, "cpu/total").over(labeled("cpu/total")))
		add("big "+phase+": wall / labeled-jobs "+phase, "", noLimit, of("big", phase, wall).over(labeled("wall")))
	}
	startOfOne := of("floor", "start", "cpu/total").over(r.size("floor", "jobs"))
	runOfOne := of("run", completed, "cpu/total").over(r.size("run", "sets").times(r.size("run", "jobs of each")))
	for _, name := range []string{"floor", "labeled-jobs"} {
		lifeOfOne := of(name, completed, "cpu/total").over(r.size(name, "jobs until completed"))
		add(name+" until completed: CPU per Job / floor start per Job", "", noLimit, lifeOfOne.over(startOfOne))
		add("run: CPU per Job / "+name+" until completed per Job", "", noLimit, runOfOne.over(lifeOfOne))
	}
}

// comparedPhase is a part of the work that bare Jobs and sets have in common.
type comparedPhase struct {
	name, sets string
	// wall is the figure of sets that is compared with the wall time of bare Jobs.
	wall string
}

var comparedPhases = []comparedPhase{{"start", "big", "wall"}, {"restart", "big", failureWall}, {completed, "run", "wall"}}

// Comparison is one table of what sets cost beside bare Jobs: a row for each figure, with the median of bare Jobs, and
// a column for each kind of set with the median and the spread of the ratios of the rounds. Requests are those for each
// Job. Figures that were measured nowhere, such as CPU times in a cluster of other machines, are left out.
func Comparison(scenarios []*Scenario) string {
	r := results{}
	for _, s := range scenarios {
		r[s.Name] = s
	}
	if r["floor"] == nil {
		return ""
	}
	var out bytes.Buffer
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(columns, "FIGURE\tfloor\tlabeled-jobs")
	for _, variant := range r.variants() {
		fmt.Fprintf(columns, "\t%s", sets("set", variant))
	}
	fmt.Fprintln(columns)
	for _, phase := range comparedPhases {
		r.writeRatios(columns, phase, "wall", phase.wall)
		for _, process := range []string{"total", "kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler"} {
			r.writeRatios(columns, phase, "cpu/"+process, "cpu/"+process)
		}
		r.writeCounts(columns, phase, "cpu/own", func(q phaseResult) quantity { return q.figure("cpu/own") })
		r.writeCounts(columns, phase, "writes to kube-apiserver for each Job", func(q phaseResult) quantity { return q.writes(notSets) })
		r.writeCounts(columns, phase, "... of endpoints", func(q phaseResult) quantity { return q.writes(isEndpoints) })
		r.writeCounts(columns, phase, "changes of each JobSet", func(q phaseResult) quantity { return q.figure(ChangesOfSets) })
	}
	_ = columns.Flush() // writing to memory does not fail
	fmt.Fprintln(&out, "\nfloor: medians. Other columns: medians of the ratios to floor in the same round, with their spread; cpu/own in seconds, and writes and changes as numbers.")
	return out.String()
}
