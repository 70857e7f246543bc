// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// count is a number that does not depend on the speed of the machine.
type count struct {
	what string
	is   quantity
	// least is 0 for those that may be none.
	least, most float64
}

// CheckCounts returns an error for each number of requests, writes or bytes that is not what it must be. What was not
// measured is an error too, so that a check cannot vanish unnoticed.
func CheckCounts(scenarios []*Scenario) error {
	r := results{}
	for _, s := range scenarios {
		r[s.Name] = s
	}
	var errs []error
	counts, alone := r.countsAlone()
	if len(alone) < len(r) {
		counts = append(counts, r.counts()...)
	}
	for _, c := range counts {
		switch {
		case !c.is.known:
			errs = append(errs, fmt.Errorf("%s: not measured (%s)", c.what, c.is.text))
		case c.is.value < c.least || c.is.value > c.most:
			errs = append(errs, fmt.Errorf("%s: is %s, must be %s to %s (%s)",
				c.what, number(c.is.value), number(c.least), number(c.most), c.is.text))
		}
	}
	return errors.Join(errs...)
}

// number of something in a phase; something that was not counted was not there, if the phase was measured.
func (r results) called(scenario, phase, figure string) quantity {
	q := r.median(scenario, phase, figure)
	if wall := r.median(scenario, phase, "wall"); wall.known && !q.known {
		q.known = true
	}
	return q
}

func (r results) counts() []count {
	const controller = "client/jobset-controller/"
	all, jobs, each := r.size("run", "sets"), r.size("floor", "jobs"), r.size("run", "jobs of each")
	run := func(call string) quantity { return r.called("run", completed, controller+call).over(all) }
	start := func(call string) quantity { return r.called("big", "start", controller+call) }
	restart := func(call string) quantity { return r.called("big", "restart", controller+call) }
	one := quantity{value: 1, known: true, text: "1"}
	counts := []count{
		{"Jobs created by a set that runs, for each Job", run("create jobs").over(each), 1, 1},
		{"Services created by a set that runs", run("create services"), 1, 1},
		{"events of a set that runs", run("create events"), 1, 1},
		{"Jobs patched by a set that runs", run("patch jobs"), 0, 0},
		{"Jobs deleted by a set that runs", run("delete jobs"), 0, 0},
		{"writes to a set that runs", r.median("run", completed, "writes to each set"), 1, mostWrites},
		{"Jobs created by a start, for each Job", start("create jobs").over(jobs), 1, 1},
		{"Jobs deleted by a restart, for each Job", restart("delete jobs").over(jobs), 1, 1},
		{"Jobs created by a restart, for each Job", restart("create jobs").over(jobs), 1, 1},
		{"Jobs patched by a suspension, for each Job", r.called("big", "suspend", controller+"patch jobs").over(jobs), 1, 1},
		{"Jobs patched by a resumption, for each Job", r.called("big", "resume", controller+"patch jobs").over(jobs), 1, 1},
		{"bytes of JobSets in the etcd of kube-apiserver", r.highest("stored/etcd/jobset bytes"), 0, 0},
		{"JobSets in their own etcd after a start", r.median("big", "start", "stored/jobset-etcd/jobset objects"), 1, 1},
		{"APIService available with all sets", r.median("cold", "start", "stored/jobset-etcd/jobset objects").over(r.size("cold", "sets")), 1, 1},
	}
	for _, call := range []string{"create", "update", "patch", "delete"} {
		for _, resource := range []string{"jobs", "services", "jobsets/status"} {
			for _, phase := range []string{AtRest, ControllerRestarted} {
				counts = append(counts, count{
					"wide: " + phase + ": " + call + " " + resource, r.called("wide", phase, controller+call+" "+resource).over(one), 0, 0})
			}
		}
	}
	return slices.Concat(counts, r.listCounts(), r.sequenceCounts(), r.groupCounts(), r.servingCounts(), r.refusalCounts(), r.placeCounts())
}

// sequenceCounts are about requests of the controller for sequences.
func (r results) sequenceCounts() []count {
	n := r.size("sequences", "sequences")
	steps := n.times(r.size("sequences", "steps"))
	calls := func(call string) quantity {
		return r.called("sequences", "steps by a sequence", "client/jobset-controller/"+call)
	}
	return []count{
		{"Jobs created by a sequence, for each step", calls("create jobs").over(steps), 1, 1},
		{"Jobs patched by a sequence", calls("patch jobs").over(n), 0, 0},
		{"Jobs deleted by a sequence", calls("delete jobs").over(n), 0, 0},
		{"writes to a sequence, for each step", r.median("sequences", "steps by a sequence", "writes to each sequence").over(r.size("sequences", "steps")),
			1, mostStepWrites},
	}
}

// groupCounts are about requests of the controller for pod groups.
func (r results) groupCounts() (counts []count) {
	for _, name := range []string{"few groups", "groups"} {
		pods := r.size("groups", name).times(r.size("groups", "pods of each"))
		calls := func(phase, call string) quantity {
			return r.called("groups", name+": "+phase, "client/jobset-controller/"+call)
		}
		counts = append(counts,
			count{name + ": pods patched while they start", calls("start", "patch pods").over(pods), 0, 0},
			count{name + ": pods patched once the group is ready, for each pod", calls("label", "patch pods").over(pods), 1, 1},
			count{name + ": Jobs read", calls("label", "get jobs").over(pods), 0, 0},
		)
	}
	return counts
}

// servingCounts are about requests of the controller for LeaderWorkerSets.
func (r results) servingCounts() (counts []count) {
	n, one := r.size("leaderworkersets", "groups"), quantity{value: 1, known: true, text: "1"}
	calls := func(phase, call string) quantity {
		return r.called("leaderworkersets", phase, "client/jobset-controller/"+call)
	}
	counts = append(counts,
		// The StatefulSet of the leaders is created like that of each group.
		count{"groups: StatefulSets created by create, for each group and the leaders", calls("groups: create", "create statefulsets").over(n.plus(one)), 1, 1},
		count{"groups: StatefulSets created by update, for each group", calls("groups: update", "create statefulsets").over(n), 1, mostGroupCreations},
		count{"groups: pods deleted by the restart of one", calls("groups: restart of one group", "delete pods").over(one), 1, 1},
	)
	for _, call := range servingWrites() {
		counts = append(counts, count{"groups at rest: " + call, calls("at rest", call).over(one), 0, 0})
	}
	return counts
}

// refusalCounts are about sets for which nothing can be done. What is asked for again is refused again.
func (r results) refusalCounts() (counts []count) {
	one := quantity{value: 1, known: true, text: "1"}
	for _, phase := range []string{QuotaUsedUp, NoNode} {
		watched := r.median("refusals", phase, Watched)
		tries, asked := mostTries(watched.value), 0.0
		if phase == QuotaUsedUp {
			asked = tries
		}
		syncs := r.called("refusals", phase, Syncs).over(one)
		syncs.known = syncs.known && watched.known
		counts = append(counts, count{phase + ": " + Syncs, syncs, 0, tries})
		for _, call := range servingWrites() {
			most := 0.0
			if call == "create statefulsets" {
				most = asked
			}
			counts = append(counts, count{phase + ": " + call, r.called("refusals", phase, "client/jobset-controller/"+call).over(one), 0, most})
		}
	}
	return counts
}

// Phases of refusals, and a figure of them.
const (
	QuotaUsedUp = "a quota is used up"
	NoNode      = "leaders get no node"
	Syncs       = "syncs"
	// Watched is the time in which the syncs happened.
	Watched = "watched"
)

// pauseOfTries is the time between two tries of a set that is backed off, once it was refused for a while.
const pauseOfTries = 12

// mostTries is how often such a set is looked at in some seconds: after each pause, and once more for a deadline, with another one to spare.
func mostTries(seconds float64) float64 { return 2 + math.Ceil(seconds/pauseOfTries) }

// mostGroupCreations is how often the StatefulSet of a group is created at most in an update, on average: the
// StatefulSet controller deletes leaders too, and a group whose leader goes while its StatefulSet is created is created
// once more.
const mostGroupCreations = 1.25

// mostStepWrites is how often a sequence is written at most for each of its steps: its start, its child, its end, and a
// share of what is written once: creation, finalizer and completion.
const mostStepWrites = 6

// mostWrites is what a set of four Jobs is written at most over its life: its creation, its states, and counts of Jobs now
// and then while they take long to come up.
const mostWrites = 5

// listCounts are about the bytes of answers, for the smallest number of sets that was listed.
func (r results) listCounts() []count {
	sets := "100"
	bytes := func(way string) quantity { return r.median("list", sets+": "+way, "bytes") }
	return []count{
		{"list: protobuf bytes / JSON bytes", bytes("cache protobuf").over(bytes("cache json")), 0, mostProtobuf},
		{"list: bytes of a consistent list / of one from cache", bytes("consistent json").over(bytes("cache json")), 1, 1},
		{"list: bytes of a set in protobuf", r.median("list", sets+": cache protobuf", "bytes of each"), 0, mostBytes},
	}
}

const (
	// mostProtobuf is the part of JSON that protobuf is at most, managed fields included.
	mostProtobuf = 0.85
	// mostBytes is the size of a typical set at most.
	mostBytes = 8 << 10
)
