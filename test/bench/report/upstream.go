// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Upstream is the name of the variant of a scenario that runs with upstream's controllers.
const Upstream = "upstream"

func isUpstream(scenario string) bool { return strings.HasSuffix(scenario, variantMark+Upstream) }

// rival is a figure of sets that is compared with the same figure with upstream's controllers.
type rival struct {
	scenario, phase, figure string
	// limit is the target of the ratio, of sets without a variant.
	limit float64
}

const (
	// programs is the figure of the peak memory of the programs that only the sets need, together: our programs, or the controller of upstream for
	// sets of that kind. It is a sum of figures.
	programs = "peak/programs"
	// programsAndStore adds how much the resident memory of kube-apiserver and its etcd has grown since before there were sets.
	programsAndStore = "peak/programs, and growth of kube-apiserver and etcd"
	// programsAndAllOfStore adds the resident memory of kube-apiserver and its etcd, with what definitions and APIServices take without sets.
	programsAndAllOfStore = "peak/programs, and kube-apiserver and etcd"
)

// rivals are the figures of all phases that have a counterpart. Targets are ratios to upstream in the same round.
func rivals() (all []rival) {
	add := func(scenario, phase string, cpu, wall float64) {
		all = append(all, rival{scenario, phase, "wall", wall}, rival{scenario, phase, "cpu/total", cpu})
	}
	explain := func(scenario, phase string, figures ...string) {
		for _, figure := range figures {
			all = append(all, rival{scenario, phase, figure, noLimit})
		}
	}
	withoutTarget := func(scenario string, phases ...string) {
		for _, phase := range phases {
			add(scenario, phase, noLimit, noLimit)
		}
	}
	byProgram := func(scenario string, phases ...string) {
		for _, phase := range phases {
			explain(scenario, phase, "cpu/own", "cpu/kube-apiserver", "cpu/etcd", "cpu/kube-controller-manager", "cpu/kube-scheduler")
		}
	}
	add("big", "start", 0.75, 0.7)
	add("big", "restart", 0.75, 0.7)
	byProgram("big", "start", "restart")
	withoutTarget("big", "suspend", "resume", "delete")
	withoutTarget("large", "start", "restart", "suspend", "resume", "delete")
	add("run", completed, 0.8, noLimit)
	byProgram("run", completed)
	all = append(all, rival{"write", "create jobsets", "p50", 0.8})
	for _, request := range []string{"patch", "get", "status"} {
		explain("write", request+" jobsets", "p50")
	}
	for _, phase := range []string{ListWhole, ListPaged, ListByLabel} {
		explain("list", phase, "received", "decoded", "cpu/total")
	}
	add("leaderworkersets", "groups: create", 0.8, 0.8)
	add("leaderworkersets", "groups: update", 0.8, 0.8)
	add("leaderworkersets", "groups: restart of one group", noLimit, 1)
	byProgram("leaderworkersets", "groups: create", "groups: update", "groups: restart of one group")
	withoutTarget("leaderworkersets", "groups: "+ScaleUp, "groups: "+ScaleDown, "create groups at rest")
	explain("leaderworkersets", AtRest, "cpu/total", "cpu/own")
	withoutTarget("place", Placed)
	explain("place", Placed, "cpu/own", "cpu/kube-apiserver", "cpu/kube-scheduler")
	for _, at := range [][2]string{{"big", "start"}, {"large", "start"}, {"run", completed}} {
		explain(at[0], at[1], programs, MainStoreBytes)
	}
	explain("leaderworkersets", AtRest, programs)
	withoutTarget(many, "create", ControllerRestarted)
	all = append(all, rival{many, "create", programsAndStore, 1})
	explain(many, "create", programsAndAllOfStore, MainStoreBytes)
	explain(many, AtRest, "cpu/total")
	explain(many, ControllerRestarted, "cpu/own", "cpu/kube-apiserver", programs)
	return all
}

// of returns the figure in a scenario, or in the variant of it.
func (v rival) of(r results, variant string) (q quantity) {
	scenario := sets(v.scenario, variant)
	switch v.figure {
	case programs:
		q = r.peakOfPrograms(v.scenario, scenario, v.phase)
	case programsAndStore, programsAndAllOfStore:
		q = r.peakOfPrograms(v.scenario, scenario, v.phase)
		for _, process := range MainStore {
			resident := r.median(scenario, v.phase, "rss/"+process)
			if v.figure == programsAndStore {
				resident = resident.minus(r.median(scenario, BeforeSets, MemoryOf(process)))
			}
			q = q.plus(resident)
		}
	default:
		return r.median(scenario, v.phase, v.figure)
	}
	q.text = scenario + ": " + v.phase + ": " + v.figure
	return q
}

// peakOfPrograms adds up the peaks of the memory of the programs that only the sets of a scenario need.
func (r results) peakOfPrograms(kind, scenario, phase string) (sum quantity) {
	controller := "upstream-jobset"
	if kind == "leaderworkersets" {
		controller = "upstream-lws"
	}
	for _, process := range append(slices.Clone(ourPrograms), controller) {
		peak := r.median(scenario, phase, "peak/"+process)
		switch {
		case sum.known && peak.known:
			sum = sum.plus(peak)
		case peak.known:
			sum = peak
		}
	}
	return sum
}

// ourPrograms are our processes, which sets of all kinds need.
var ourPrograms = []string{"jobset-apiserver", "jobset-controller", "jobset-etcd"}

// addUpstream adds what sets cost beside sets of upstream, if those were measured.
func (r results) addUpstream(add func(figure, unit string, limit float64, q quantity)) {
	for _, v := range rivals() {
		if upstream := v.of(r, Upstream); upstream.known {
			add(v.scenario+" "+v.phase+": "+v.figure+" / upstream", "", v.limit, v.of(r, "").over(upstream))
		}
	}
}

// BesideUpstream is one table of what sets cost beside sets of upstream: a row for each figure, with the medians, and with the median and
// the spread of the ratios of the rounds, also for the sets of each variant. It is empty if upstream was not measured.
func BesideUpstream(scenarios []*Scenario) string {
	r := results{}
	for _, s := range scenarios {
		r[s.Name] = s
	}
	var out bytes.Buffer
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(columns, "FIGURE\tupstream\town\town / upstream")
	for _, variant := range r.variants()[1:] {
		fmt.Fprintf(columns, "\t%s", sets("own", variant)+" / upstream")
	}
	fmt.Fprintln(columns)
	rows := 0
	for _, v := range rivals() {
		upstream := v.of(r, Upstream)
		if !upstream.known {
			continue
		}
		rows++
		own := v.of(r, "")
		fmt.Fprintf(columns, "%s %s: %s\t%s\t%s\t%s", v.scenario, v.phase, v.figure, number(upstream.value), number(own.value), cell(own.over(upstream)))
		for _, variant := range r.variants()[1:] {
			fmt.Fprintf(columns, "\t%s", cell(v.of(r, variant).over(upstream)))
		}
		fmt.Fprintln(columns)
	}
	if rows == 0 {
		return ""
	}
	_ = columns.Flush() // writing to memory does not fail
	return "\n" + out.String()
}
