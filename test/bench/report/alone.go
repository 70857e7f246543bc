// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"
	"strings"
)

const (
	many  = "many"
	rate  = "rate"
	churn = "churn"
)

// countsAlone are the counts of scenarios that are run by themselves, with the names of those that were.
func (r results) countsAlone() (counts []count, alone []string) {
	for _, name := range r.own() {
		switch scenario, _, _ := strings.Cut(name, variantMark); scenario {
		case inPlace:
			counts = append(counts, r.inPlaceCounts()...)
		case growth:
			counts = append(counts, r.growthCounts(name)...)
		case many:
			counts = append(counts, r.manyCounts(name)...)
		case rate:
			counts = append(counts, count{name + ": " + LostSets, r.median(name, OnSchedule, LostSets), 0, 0})
		default:
			continue
		}
		alone = append(alone, name)
	}
	return counts, alone
}

// own returns the names of the scenarios that ran with our programs, in their order.
func (r results) own() []string { return slices.DeleteFunc(slices.Sorted(maps.Keys(r)), isUpstream) }

// growthCounts are about requests of the controller for each Job, whatever the number of Jobs.
func (r results) growthCounts(name string) (counts []count) {
	for _, part := range []struct{ name, call, done string }{
		{"start", "create jobs", "created"}, {"restart", "delete jobs", "deleted"}, {"restart", "create jobs", "created"},
		{"suspend", "patch jobs", "patched"}, {"resume", "patch jobs", "patched"}, {"create suspended", "create jobs", "created"},
	} {
		for _, jobs := range r[name].growthSizes(part.name) {
			phase := GrowthPhase(jobs, part.name)
			n := quantity{value: float64(jobs), known: true, text: "number of Jobs"}
			calls := r.called(name, phase, "client/jobset-controller/"+part.call)
			counts = append(counts, count{name + " " + phase + ": Jobs " + part.done + ", for each Job", calls.over(n), 1, 1})
		}
	}
	return counts
}

// restPhases are the phases in which nothing is written.
var restPhases = []string{AtRest, ControllerRestarted, AtRestCompleted}

// manyCounts are about writes of the controller while nothing is to be done.
func (r results) manyCounts(name string) (counts []count) {
	for _, phase := range restPhases {
		counts = append(counts, count{name + ": " + phase + ": " + ControllerWrites, r.median(name, phase, ControllerWrites), 0, 0})
	}
	return counts
}

// addManySets adds what each of many sets costs, what is written while they are at rest, and how soon they are created.
func (r results) addManySets(add func(figure, unit string, limit float64, q quantity)) {
	for _, name := range r.own() {
		switch scenario, _, _ := strings.Cut(name, variantMark); scenario {
		case many:
			r.addManyOf(name, add)
		case rate:
			r.addRateOf(name, add)
		case churn:
			r.addChurnOf(name, add)
		}
	}
}

func (r results) addManyOf(name string, add func(figure, unit string, limit float64, q quantity)) {
	for _, phase := range restPhases {
		add(name+" "+phase+": "+ControllerWrites, "", 0, r.median(name, phase, ControllerWrites))
	}
	for _, program := range []string{"jobset-controller", "jobset-apiserver"} {
		add(name+": memory of "+program+" for each set", UnitKiB, noLimit, r.median(name, "create", "memory of "+program+" for each set"))
		add(name+": memory of "+program+" for each completed set", UnitKiB, noLimit, r.median(name, completed, "memory of "+program+" for each completed set"))
	}
}

// addChurnOf adds by how much our programs have grown although as many sets exist as before: the memory after the last three parts, beside
// that after the second to fourth. What is in a heap at one moment varies.
func (r results) addChurnOf(name string, add func(figure, unit string, limit float64, q quantity)) {
	for _, program := range ChurnedPrograms {
		after := func(figure string, first int) quantity {
			sum := r.median(name, ChurnPart(first), figure)
			return sum.plus(r.median(name, ChurnPart(first+1), figure)).plus(r.median(name, ChurnPart(first+2), figure))
		}
		grown := func(figure string) quantity { return after(figure, ChurnParts-3).over(after(figure, 1)) }
		add(name+": "+LiveHeapOf(program)+" at the end / near the beginning", "", 1.1, grown(LiveHeapOf(program)))
		add(name+": "+MemoryOf(program)+" at the end / near the beginning", "", noLimit, grown(MemoryOf(program)))
	}
}

func (r results) addRateOf(name string, add func(figure, unit string, limit float64, q quantity)) {
	of := func(figure string) quantity { return r.median(name, OnSchedule, figure) }
	add(name+": "+LostSets, "", 0, of(LostSets))
	add(name+": "+SetsPerSecond, UnitRate, noLimit, of(SetsPerSecond))
	for _, p := range []string{"p50", "p99"} {
		add(name+": create "+p+" of a JobSet / of a ConfigMap", "", noLimit, of("create jobsets, "+p).over(of("create configmaps, "+p)))
	}
	add(name+": from the request for a set until its Job exists, p99", UnitMillis, noLimit, of("until its Job exists, p99"))
}
