// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// revisionAt is the place of the column of revisions, which LeaderWorkerSets and DisaggregatedSets have.
const revisionAt = 4

var revisionColumns = slices.Insert(slices.Clone(columns), revisionAt, cli.Column{Title: "REVISION", Drop: 5})

// Lines implements View.
func (t *LeaderWorkerSetTree) Lines(terminal cli.Terminal, now time.Time, all bool) []string {
	return linesWithRevisions(terminal, t.items(now, all))
}

// linesWithRevisions returns the lines of a tree that has the column of revisions.
func linesWithRevisions(terminal cli.Terminal, top item) []string {
	d := draw(terminal, &top)
	d.insert(revisionAt, revisions(&top))
	return d.lines(revisionColumns)
}

// revisions are the revisions of an item and of those below it, in the order in which they are drawn.
func revisions(it *item) []string {
	out := []string{cli.Clean(it.revision)}
	for i := range it.children {
		out = append(out, revisions(&it.children[i])...)
	}
	return out
}

var leaderWorkerSetSeverity = map[string]severity{
	helper.PhaseFailed: failed, helper.PhaseTerminating: leaving, helper.PhasePending: starting, helper.PhaseProgressing: late,
	helper.PhaseUpdating: late, helper.PhasePaused: late,
}

// items returns the set with as much below it as is to be shown.
func (t *LeaderWorkerSetTree) items(now time.Time, all bool) item {
	jobs, pods := t.units(all)
	return t.itemsOf(now, choose(jobs, pods, all))
}

// units returns the replicas that may get a line, and the number of their pods.
func (t *LeaderWorkerSetTree) units(all bool) (jobs []*Job, pods int) {
	for i := range t.Replicas {
		if unit := t.Replicas[i].unit; unit.exists() || all {
			jobs, pods = append(jobs, unit), pods+len(unit.Pods)
		}
	}
	return jobs, pods
}

// itemsOf returns the set with the chosen replicas below it, and the others counted by state and revision.
func (t *LeaderWorkerSetTree) itemsOf(now time.Time, chosen choice) item {
	top := item{
		name: "leaderworkerset/" + t.Name, state: t.State, ready: t.ReadyOf(), restarts: strconv.Itoa(t.Restarts), age: age(now, &t.CreateTime),
		revision: t.Revision, message: t.summary(), severity: leaderWorkerSetSeverity[t.State],
	}
	rest := map[string][]*Replica{}
	for i := range t.Replicas {
		g := &t.Replicas[i]
		if chosen.jobs[g.unit] {
			top.children = append(top.children, g.item(now, chosen))
			continue
		}
		key := g.State + "\x00" + g.Message
		if g.unit.exists() {
			key = g.State + "\x00" + g.Revision
		}
		rest[key] = append(rest[key], g)
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		if replicas := rest[key]; len(replicas) == 1 {
			top.children = append(top.children, replicas[0].item(now, chosen))
		} else {
			top.children = append(top.children, summarizeReplicas(replicas, len(top.children) > 0))
		}
	}
	return top
}

// summary is what the line of the set says at its end. The messages of an ordinary course only repeat the state.
func (t *LeaderWorkerSetTree) summary() string {
	var parts []string
	switch t.State {
	case helper.PhaseFailed:
		parts = append(parts, t.Reason+": "+t.Message)
	case helper.PhaseUpdating, helper.PhasePaused:
		parts = append(parts, fmt.Sprintf("%d of %s updated, partition %d", t.ReplicasUpdated, cli.Count(t.ReplicasWanted, "group"), t.Partition))
	}
	if t.RestartLimit != nil {
		parts = append(parts, fmt.Sprintf("at most %s of a group", cli.Count(int(*t.RestartLimit), "restart")))
	}
	return oneLine(strings.Join(parts, "; "))
}

func (p *Replica) item(now time.Time, chosen choice) item {
	it := p.unit.item(now, chosen)
	it.name, it.revision = "group/"+strconv.Itoa(p.Index), p.Revision
	if p.Surge {
		it.message = oneLine("surge " + it.message)
	}
	return it
}

// summarizeReplicas is one line for several replicas of the same state and revision.
func summarizeReplicas(replicas []*Replica, more bool) item {
	jobs := make([]*Job, 0, len(replicas))
	for _, g := range replicas {
		jobs = append(jobs, g.unit)
	}
	it := summarizeJobs(jobs, more)
	it.revision = replicas[0].Revision
	switch {
	case !replicas[0].unit.exists():
		it.name = "group/" + ranged(jobs)
	case more:
		it.name = cli.Number(len(jobs)) + " more groups"
	default:
		it.name = cli.Number(len(jobs)) + " groups"
	}
	return it
}

var _ View = (*LeaderWorkerSetTree)(nil)
