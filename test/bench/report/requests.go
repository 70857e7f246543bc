// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

const (
	// answered begins the names of figures of requests that a server has answered, and sent those of requests that a program has sent.
	answered, sent = "calls/", "sent/"
	// byControllers begins the names of figures of requests of the controllers of sets, from the audit log of kube-apiserver.
	byControllers = "client/jobset-controller/"
	// webhookVerb is the verb of calls of webhooks, which are no requests that a server answers.
	webhookVerb = "WEBHOOK"
	// fewRequests is how many requests for each unit of the work a row has at least in some column. Rows with fewer are added up.
	fewRequests = 0.05
)

// upkeep returns whether requests are left out, because they come from time to time, whatever the work: programs keep their leases, and look at
// how they are served. A watch counts when it ends.
func upkeep(figure string) bool {
	call, resource, _ := strings.Cut(figure, " ")
	return resource == "leases" || resource == "apiservices" || strings.HasSuffix(call, "/WATCH")
}

// unit is what the requests of a part of a scenario are divided by.
type unit struct {
	name string
	n    quantity
}

// unitOf returns the unit of a phase; one without a name for requests that are shown as they are.
func (r results) unitOf(name, phase string) unit {
	size := func(what string) quantity { return r.size(name, what) }
	one := unit{"", quantity{value: 1, known: true}}
	if phase == AtRest || phase == ControllerRestarted || strings.HasSuffix(phase, ": restart of one group") {
		return one
	}
	switch scenario, _, _ := strings.Cut(name, variantMark); scenario {
	case "floor", "big", "large", "run":
		return unit{"Job", phaseResult{r, name, phase}.jobs()}
	case "write":
		return unit{"request of the client", size("requests of each kind")}
	case "leaderworkersets":
		if phase == "create groups at rest" {
			return unit{"group", size("groups at rest")}
		}
		return unit{"group", size("groups")}
	case "place":
		return unit{"pod", size("jobs").times(size("pods of each"))}
	case many:
		return unit{"set", size("namespaces").times(size("sets of each"))}
	}
	return one
}

// bareOf returns the part of a scenario without sets that does the same work; empty if there is none.
func bareOf(scenario, phase string) (bare, same string) {
	switch {
	case scenario == "big" && (phase == "start" || phase == "restart"), scenario == "run" && phase == completed:
		return "floor", phase
	case scenario == "leaderworkersets":
		if of, groups := strings.CutPrefix(phase, "groups: "); groups {
			return scenario, "statefulsets: " + of
		}
	}
	return "", ""
}

// requests are numbers of requests by the title of their row, of which each is one kind, or the sum of several.
type requests map[string]quantity

func (q requests) add(title string, n quantity) {
	if sum, found := q[title]; found {
		n = sum.plus(n)
	}
	q[title] = n
}

// requests returns those of a phase, for each unit; nil if none were counted.
func (r results) requests(scenario, phase string) requests {
	of := r.unitOf(scenario, phase)
	found := requests{}
	for _, f := range (phaseResult{r, scenario, phase}).figures() {
		if upkeep(f.Name) {
			continue
		}
		n := r.median(scenario, phase, f.Name).over(of.n)
		if server, call, ok := cutFigure(f.Name, answered); ok {
			if !strings.HasPrefix(call, webhookVerb+" ") {
				found.add("answered by "+server, n)
			}
			found.add(call, n)
		}
		if call, ok := strings.CutPrefix(f.Name, byControllers); ok {
			found.add("by the controllers of sets: "+call, n)
		}
		if program, method, ok := cutFigure(f.Name, sent); ok {
			kind := "reads"
			if isWrite(method) {
				kind = "writes"
			}
			found.add(kind+" sent by "+program, n)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// cutFigure returns the program in the name of a figure, and what comes after it.
func cutFigure(figure, prefix string) (program, rest string, ok bool) {
	name, ok := strings.CutPrefix(figure, prefix)
	program, rest, found := strings.Cut(name, "/")
	return program, rest, ok && found
}

// Requests is one table of the requests of each part of a scenario that was measured beside upstream: a row for each kind, with the medians
// without sets, with upstream's controllers, with our programs, and with the sets of each variant. It is empty if upstream was not measured.
func Requests(scenarios []*Scenario) string {
	r := results{}
	for _, s := range scenarios {
		r[s.Name] = s
	}
	var out bytes.Buffer
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(columns, "REQUESTS\tbare\tupstream\town")
	for _, variant := range r.variants()[1:] {
		fmt.Fprintf(columns, "\t%s", sets("own", variant))
	}
	fmt.Fprintln(columns)
	rows := 0
	for _, s := range scenarios {
		if isUpstream(s.Name) || strings.Contains(s.Name, variantMark) {
			continue
		}
		for _, phase := range s.Phases {
			rows += r.writeRequests(columns, s.Name, phase.Name)
		}
	}
	if rows == 0 {
		return ""
	}
	_ = columns.Flush() // writing to memory does not fail
	return "\n" + out.String() + requestsNote
}

const requestsNote = `
Requests that API servers answered, by verb and resource, those of this program included, without leases and watches; WEBHOOK is a call of a webhook. Requests by
the controllers of sets are from the audit log, with the verbs of that. "sent by" is what a program counts itself: of these, the resources are not known. bare: the
same work without sets.
`

// writeRequests writes the rows of a phase, and returns how many there are.
func (r results) writeRequests(out *tabwriter.Writer, scenario, phase string) int {
	upstream := r.requests(VariantName(scenario, Upstream), phase)
	if upstream == nil {
		return 0
	}
	all := []requests{r.requests(bareOf(scenario, phase)), upstream}
	for _, variant := range r.variants() {
		all = append(all, r.requests(sets(scenario, variant), phase))
	}
	title := scenario + " " + phase
	if of := r.unitOf(scenario, phase); of.name != "" {
		title += ", for each " + of.name
	}
	rows := titles(all, fewRequests)
	for _, row := range rows {
		fmt.Fprintf(out, "%s: %s", title, row)
		for _, column := range all {
			fmt.Fprintf(out, "\t%s", column.cell(row))
		}
		fmt.Fprintln(out)
	}
	return len(rows)
}

// cell is a number of requests with its spread; one that was not seen in a phase that was measured is 0.
func (q requests) cell(row string) string {
	n, found := q[row]
	switch {
	case q == nil:
		return "-"
	case !found:
		return "0"
	}
	return cell(n)
}

// others is the title of the row of requests of which there are few.
const others = "others"

// titles returns the titles of rows, the largest numbers first, and adds up requests of which there are few.
func titles(columns []requests, few float64) []string {
	most := map[string]float64{}
	for _, column := range columns {
		for row, n := range column {
			most[row] = max(most[row], n.value)
		}
	}
	rows := slices.SortedFunc(maps.Keys(most), func(a, b string) int {
		return cmp.Or(cmp.Compare(most[b], most[a]), cmp.Compare(a, b))
	})
	kept := slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return most[row] < few })
	for _, column := range columns {
		for _, row := range rows {
			if n, found := column[row]; found && most[row] < few && !strings.Contains(row, " by ") {
				column.add(others, n)
			}
		}
	}
	if slices.ContainsFunc(columns, func(column requests) bool { return column[others].known }) {
		kept = append(kept, others)
	}
	return kept
}
