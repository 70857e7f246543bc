// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
)

// ChangesOfSets is the figure of how often a watch showed that a JobSet was written, its creation and deletion aside.
const ChangesOfSets = "changes of each JobSet"

// Phases that several scenarios have.
const (
	BeforeSets          = "before the sets"
	AtRest              = "at rest"
	AtRestCompleted     = "at rest after completion"
	ControllerRestarted = "controller restarted"
	OnSchedule          = "creation on schedule"
	ScaleUp             = "scale up"
	ScaleDown           = "scale down"
	ListWhole           = "whole"
	ListPaged           = "paged"
	ListByLabel         = "by label"
	Placed              = "exclusive: until all pods are scheduled"
)

const (
	// MainStoreBytes is the figure of the bytes of all objects of the namespaces of a scenario in the etcd of kube-apiserver.
	MainStoreBytes = "bytes in the etcd of kube-apiserver"
	// ControllerWrites is the figure of how often jobset-controller wrote something, its lease aside.
	ControllerWrites = "writes of jobset-controller"
	// LostSets is the figure of how many sets never got their Job.
	LostSets = "sets without their Job"
	// SetsPerSecond is the figure of how many sets were created in a second.
	SetsPerSecond = "sets created per second"
)

// ChurnParts are the parts of churn. Memory after the last ones is compared with memory after the first but one: a program grows until its
// caches have their size.
const ChurnParts = 10

// ChurnPart is the name of a part of churn, from 0 on.
func ChurnPart(part int) string { return fmt.Sprintf("part %d of %d", part+1, ChurnParts) }

// ChurnedPrograms are the programs whose memory churn looks at.
var ChurnedPrograms = []string{"jobset-controller", "jobset-apiserver"}

// LiveHeapOf is the name of the figure of what a program has in its heap after its garbage is collected.
func LiveHeapOf(program string) string { return "live heap of " + program }

// MainStore are the processes that store the objects of a cluster, apart from the objects that our server stores.
var MainStore = []string{"kube-apiserver", "etcd"}

// MemoryOf is the name of the figure of the resident memory of a process.
func MemoryOf(process string) string { return "memory of " + process }

// phaseResult is what a scenario measured in a phase.
type phaseResult struct {
	r               results
	scenario, phase string
}

func (p phaseResult) figure(name string) quantity { return p.r.median(p.scenario, p.phase, name) }

// figures returns all figures of the phase; nil if it was not measured.
func (p phaseResult) figures() []*Figure {
	if s := p.r[p.scenario]; s != nil {
		for _, phase := range s.Phases {
			if phase.Name == p.phase {
				return phase.Figures
			}
		}
	}
	return nil
}

// jobs is the number of Jobs of the phase.
func (p phaseResult) jobs() quantity {
	switch scenario, _, _ := strings.Cut(p.scenario, variantMark); {
	case scenario == "run":
		return p.r.size(p.scenario, "sets").times(p.r.size(p.scenario, "jobs of each"))
	case p.phase == completed:
		return p.r.size(p.scenario, "jobs until completed")
	}
	return p.r.size(p.scenario, "jobs")
}

// notSets leaves out JobSets, which kube-apiserver counts only where it stores them.
func notSets(resource string) bool {
	return resource != "jobsets" && !strings.HasPrefix(resource, "jobsets/")
}

func isEndpoints(resource string) bool {
	return resource == "endpoints" || resource == "endpointslices"
}

// writes is the number of requests that write something to kube-apiserver, for each Job.
func (p phaseResult) writes(of func(resource string) bool) quantity {
	const prefix = "calls/kube-apiserver/"
	sum := quantity{}
	for _, f := range p.figures() {
		call, counted := strings.CutPrefix(f.Name, prefix)
		verb, resource, _ := strings.Cut(call, " ")
		sum.known = sum.known || counted
		if counted && isWrite(verb) && of(resource) {
			sum.value += f.Median
		}
	}
	return sum.over(p.jobs())
}

func isWrite(verb string) bool {
	switch verb {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		return true
	}
	return false
}

// columns returns the results of a phase: of bare Jobs, of those with labels, and of the sets of each variant.
func (r results) columns(phase comparedPhase) []phaseResult {
	columns := []phaseResult{{r, "floor", phase.name}, {r, "labeled-jobs", phase.name}}
	for _, variant := range r.variants() {
		columns = append(columns, phaseResult{r, sets(phase.sets, variant), phase.name})
	}
	return columns
}

// writeRatios writes a row with the figure of bare Jobs, and the ratios of the others to it. The figure may have another name for sets.
func (r results) writeRatios(out io.Writer, phase comparedPhase, figure, ofSets string) {
	columns := r.columns(phase)
	floor := columns[0].figure(figure)
	if !floor.known {
		return
	}
	low, high := Spread(floor.rounds)
	fmt.Fprintf(out, "%s: %s\t%s s (%s - %s)", phase.name, figure, number(floor.value), number(low), number(high))
	for i, column := range columns[1:] {
		name := figure
		if i > 0 {
			name = ofSets
		}
		fmt.Fprintf(out, "\t%s", cell(column.figure(name).over(floor)))
	}
	fmt.Fprintln(out)
}

// writeCounts writes a row of values that are compared as they are.
func (r results) writeCounts(out io.Writer, phase comparedPhase, title string, of func(phaseResult) quantity) {
	columns, known := r.columns(phase), false
	cells := make([]string, len(columns))
	for i, column := range columns {
		value := of(column)
		cells[i], known = cell(value), known || value.known
	}
	if known {
		fmt.Fprintf(out, "%s: %s\t%s\n", phase.name, title, strings.Join(cells, "\t"))
	}
}

// cell is a value with its spread, if it is known.
func cell(q quantity) string {
	if !q.known {
		return "-"
	}
	if len(q.rounds) < 2 {
		return number(q.value)
	}
	low, high := Spread(q.rounds)
	return fmt.Sprintf("%s (%s - %s)", number(q.value), number(low), number(high))
}
