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

// revisionAt is the place of the column of revisions, which only LeaderWorkerSets have.
const revisionAt = 4

var groupColumns = slices.Insert(slices.Clone(columns), revisionAt, cli.Column{Title: "REVISION", Drop: 5})

// Lines implements View.
func (t *Groups) Lines(terminal cli.Terminal, now time.Time, all bool) []string {
	top := t.items(now, all)
	d := draw(terminal, &top)
	d.insert(revisionAt, revisions(&top))
	return d.lines(groupColumns)
}

// revisions are the revisions of an item and of those below it, in the order in which they are drawn.
func revisions(it *item) []string {
	out := []string{cli.Clean(it.revision)}
	for i := range it.children {
		out = append(out, revisions(&it.children[i])...)
	}
	return out
}

var groupsSeverity = map[string]severity{
	helper.PhaseFailed: failed, helper.PhaseTerminating: leaving, helper.PhasePending: starting, helper.PhaseProgressing: late,
	helper.PhaseUpdating: late, helper.PhasePaused: late,
}

// items returns the set with as much below it as is to be shown.
func (t *Groups) items(now time.Time, all bool) item {
	top := item{
		name: "leaderworkerset/" + t.Name, state: t.State, ready: t.ReadyOf(), restarts: strconv.Itoa(t.Restarts), age: age(now, &t.CreateTime),
		revision: t.Revision, message: t.summary(), severity: groupsSeverity[t.State],
	}
	var jobs []*Job
	pods := 0
	for i := range t.Groups {
		if unit := t.Groups[i].unit; unit.exists() || all {
			jobs, pods = append(jobs, unit), pods+len(unit.Pods)
		}
	}
	chosen := choose(jobs, pods, all)
	rest := map[string][]*PodGroup{}
	for i := range t.Groups {
		g := &t.Groups[i]
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
		if groups := rest[key]; len(groups) == 1 {
			top.children = append(top.children, groups[0].item(now, chosen))
		} else {
			top.children = append(top.children, summarizeGroups(groups, len(top.children) > 0))
		}
	}
	return top
}

// summary is what the line of the set says at its end. The messages of an ordinary course only repeat the state.
func (t *Groups) summary() string {
	var parts []string
	switch t.State {
	case helper.PhaseFailed:
		parts = append(parts, t.Reason+": "+t.Message)
	case helper.PhaseUpdating, helper.PhasePaused:
		parts = append(parts, fmt.Sprintf("%d of %s updated, partition %d", t.GroupsUpdated, cli.Count(t.GroupsWanted, "group"), t.Partition))
	}
	if t.RestartLimit != nil {
		parts = append(parts, fmt.Sprintf("at most %s of a group", cli.Count(int(*t.RestartLimit), "restart")))
	}
	return oneLine(strings.Join(parts, "; "))
}

func (p *PodGroup) item(now time.Time, chosen choice) item {
	it := p.unit.item(now, chosen)
	it.name, it.revision = "group/"+strconv.Itoa(p.Index), p.Revision
	if p.Surge {
		it.message = oneLine("surge " + it.message)
	}
	return it
}

// summarizeGroups is one line for several groups of the same state and revision.
func summarizeGroups(groups []*PodGroup, more bool) item {
	jobs := make([]*Job, 0, len(groups))
	for _, g := range groups {
		jobs = append(jobs, g.unit)
	}
	it := summarizeJobs(jobs, more)
	it.revision = groups[0].Revision
	switch {
	case !groups[0].unit.exists():
		it.name = "group/" + ranged(jobs)
	case more:
		it.name = cli.Number(len(jobs)) + " more groups"
	default:
		it.name = cli.Number(len(jobs)) + " groups"
	}
	return it
}

var _ View = (*Groups)(nil)
