// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// How much is shown of large sets.
const (
	// smallSet is the number of Jobs and pods up to which all of them are shown.
	smallSet = 40
	// fewJobs is the number of Jobs up to which each of them is shown.
	fewJobs = 20
	// mostJobs is how many Jobs that are not well are shown of more than that.
	mostJobs = 8
	// mostPods is how many pods that are not well are shown.
	mostPods = 12
	// mostAlike is how many of the pods of a Job that are in the same state are shown of them.
	mostAlike = 3
	// mostRanges is how many ranges of indices are named.
	mostRanges = 5
)

// Lines returns the tree as text.
func (t *Tree) Lines(terminal cli.Terminal, now time.Time, all bool) []string {
	top := t.items(now, all)
	d, places := draw(terminal, &top), domains(&top)
	if strings.Join(places, "") == "" {
		return d.lines(columns)
	}
	d.insert(domainAt, places)
	return d.lines(domainColumns)
}

// items returns the set with as much below it as is to be shown.
func (t *Tree) items(now time.Time, all bool) item {
	top := item{
		name: "jobset/" + t.Name, state: t.State, restarts: strconv.Itoa(t.Restarts), age: age(now, &t.CreateTime), message: t.summary(),
		severity: map[string]severity{helper.PhaseFailed: failed, helper.PhaseTerminating: leaving, helper.PhaseRestarting: starting,
			helper.PhasePending: starting, helper.PhaseStarting: late}[t.State],
	}
	jobs, pods := t.listed(all)
	chosen := choose(jobs, pods, all)
	for i := range t.ReplicatedJobs {
		g := &t.ReplicatedJobs[i]
		top.children = append(top.children, g.item(now, chosen))
	}
	top.ready = t.ReadyOf()
	return top
}

// summary is what the line of the set says at its end: the reason of the state, and the attempt.
func (t *Tree) summary() string {
	history := fmt.Sprintf("attempt %d", t.Attempt)
	if t.RestartLimit > 0 {
		history += fmt.Sprintf(", %d of %s used", t.CountedRestarts, cli.Count(t.RestartLimit, "restart"))
	}
	switch {
	case t.Reason == "":
		return history
	case t.Message == "":
		return t.Reason + "; " + history
	}
	return fmt.Sprintf("%s: %s; %s", t.Reason, t.Message, history)
}

func (g *ReplicatedJob) item(now time.Time, chosen choice) item {
	it := item{name: "replicatedJob/" + g.Name, ready: of(g.Ready, g.Replicas), restarts: strconv.Itoa(g.Restarts)}
	if g.Ready < g.Replicas {
		it.severity = late
	}
	counts := map[string][]*Job{}
	for i := range g.Jobs {
		j := &g.Jobs[i]
		counts[j.State] = append(counts[j.State], j)
	}
	states := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(-cmp.Compare(len(counts[a]), len(counts[b])), cmp.Compare(a, b))
	})
	var parts []string
	for _, state := range states {
		if len(states) == 1 {
			parts = append(parts, state)
			it.severity = max(it.severity, worstOf(counts[state]))
		} else {
			parts = append(parts, cli.Number(len(counts[state]))+" "+state)
		}
	}
	it.state = strings.Join(parts, ", ")
	it.children = g.children(now, chosen)
	return it
}

// children are the Jobs that are shown, by index, and then the others by state.
func (g *ReplicatedJob) children(now time.Time, chosen choice) []item {
	var items []item
	rest := map[string][]*Job{}
	for i := range g.Jobs {
		j := &g.Jobs[i]
		if chosen.jobs[j] {
			items = append(items, j.item(now, chosen))
		} else {
			key := j.State + "\x00" + j.Message
			if j.exists() {
				key = j.State
			}
			rest[key] = append(rest[key], j)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		if jobs := rest[key]; len(jobs) == 1 {
			items = append(items, jobs[0].item(now, chosen))
		} else {
			items = append(items, summarizeJobs(jobs, len(items) > 0))
		}
	}
	return items
}

// summarizeJobs is one line for several Jobs of the same state.
func summarizeJobs(jobs []*Job, more bool) item {
	first := jobs[0]
	it := item{name: cli.Number(len(jobs)) + " Jobs", state: first.State, severity: worstOf(jobs)}
	if more {
		it.name = cli.Number(len(jobs)) + " more Jobs"
	}
	if !first.exists() {
		it.name, it.message = "job/"+ranged(jobs), first.Message
		return it
	}
	ready, size, restarts := 0, 0, 0
	var pods []*Pod
	for _, j := range jobs {
		ready, size, restarts = ready+j.Ready, size+j.Size, restarts+j.Restarts
		for i := range j.Pods {
			pods = append(pods, &j.Pods[i])
		}
	}
	it.ready, it.restarts, it.node = of(ready, size), strconv.Itoa(restarts), nodes(pods)
	if it.severity > well {
		it.message = states(pods)
	}
	return it
}

// ranged is the name of Jobs of one replicatedJob with their indices, like train-workers-[0-3,7].
func ranged(jobs []*Job) string {
	prefix := strings.TrimSuffix(jobs[0].Name, strconv.Itoa(jobs[0].Index))
	var parts []string
	for i := 0; i < len(jobs); {
		end := i
		for end+1 < len(jobs) && jobs[end+1].Index == jobs[end].Index+1 {
			end++
		}
		part := strconv.Itoa(jobs[i].Index)
		if end > i {
			part += "-" + strconv.Itoa(jobs[end].Index)
		}
		parts = append(parts, part)
		i = end + 1
	}
	if len(parts) > mostRanges {
		parts = append(parts[:mostRanges], "...")
	}
	return fmt.Sprintf("%s[%s]", prefix, strings.Join(parts, ","))
}

func (j *Job) item(now time.Time, chosen choice) item {
	it := item{
		name: "job/" + j.Name, state: j.State, ready: of(j.Ready, j.Size), restarts: strconv.Itoa(j.Restarts), age: age(now, j.CreateTime),
		message: oneLine(j.Message), severity: severityOfJob(j), domain: j.Domain,
	}
	if !j.exists() {
		it.ready, it.restarts = "", ""
	}
	rest, shown := map[string][]*Pod{}, 0
	for i := range j.Pods {
		p := &j.Pods[i]
		if chosen.pods[p] {
			shown++
			it.children = append(it.children, p.item(now))
			continue
		}
		key := p.State
		if p.State == "Running" && !p.Ready {
			key = "Running, not ready"
		}
		rest[key] = append(rest[key], p)
	}
	// Pods that are all in the same good state are covered by the line of their Job.
	if shown == 0 && len(rest) == 1 && j.Pods[0].severity == well {
		it.node = nodes(pointers(j.Pods))
		return it
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		pods := rest[key]
		name := cli.Count(len(pods), "pod")
		if shown > 0 {
			name = cli.Number(len(pods)) + " more " + strings.TrimPrefix(name, cli.Number(len(pods))+" ")
		}
		it.children = append(it.children, item{name: name, state: key, node: nodes(pods), severity: pods[0].severity})
	}
	return it
}

func (p *Pod) item(now time.Time) item {
	return item{
		name: "pod/" + p.Name, state: p.State, ready: of(p.ContainersReady, p.Containers), restarts: strconv.Itoa(p.Restarts),
		age: age(now, &p.CreateTime), node: p.Node, message: p.Message, severity: p.severity, revision: p.Revision,
	}
}

// domainAt is the place of the column of domains, which only JobSets with exclusive placement have.
const domainAt = 4

var domainColumns = slices.Insert(slices.Clone(columns), domainAt, cli.Column{Title: "DOMAIN", Drop: 3})

// domains are the domains of an item and of those below it, in the order in which they are drawn.
func domains(it *item) []string {
	out := []string{cli.Clean(it.domain)}
	for i := range it.children {
		out = append(out, domains(&it.children[i])...)
	}
	return out
}
