// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// replicasShown is how many replicas have a row of their own if there are more than lanesShown: those that are not well come first.
const replicasShown = 20

// bundle is a replica, or replicas of one state and revision that are shown in one row.
type bundle []*ReplicaRun

// bundles returns what has a row.
func (t *LeaderWorkerSetTimeline) bundles() []bundle {
	if len(t.Replicas) > lanesShown {
		return t.bundlesOf(replicasShown)
	}
	return t.bundlesOf(len(t.Replicas))
}

// bundlesOf returns what has a row if so many replicas may have one of their own.
func (t *LeaderWorkerSetTimeline) bundlesOf(most int) []bundle {
	var own, rest []*ReplicaRun
	for i := range t.Replicas {
		own = append(own, &t.Replicas[i])
	}
	if len(own) > most {
		slices.SortStableFunc(own, func(a, b *ReplicaRun) int { return cmp.Compare(b.worry(), a.worry()) })
		shown := 0
		for shown < most && own[shown].worry() > 0 {
			shown++
		}
		own, rest = own[:shown], own[shown:]
		byIndex := func(a, b *ReplicaRun) int { return cmp.Compare(a.Index, b.Index) }
		slices.SortFunc(own, byIndex)
		slices.SortFunc(rest, byIndex)
	}
	var out []bundle
	for _, g := range own {
		out = append(out, bundle{g})
	}
	places := map[string]int{}
	for _, g := range rest {
		key := g.State + " " + g.Revision
		if _, known := places[key]; !known {
			places[key] = len(out)
			out = append(out, nil)
		}
		out[places[key]] = append(out[places[key]], g)
	}
	return out
}

// worries are how much replicas in a state need a user to look at them.
var worries = map[string]int{snapshot.JobFailed: 5, snapshot.JobStarting: 4, snapshot.JobTerminating: 3, snapshot.Missing: 2}

// worry is how much a replica needs a user to look at it.
func (g *ReplicaRun) worry() int { return worries[g.State] + min(g.Restarts, 1) }

// label names the row of a bundle.
func (b bundle) label() string {
	if len(b) == 1 {
		return fmt.Sprintf("group %d", b[0].Index)
	}
	if b[0].RevisionNumber == 0 {
		return cli.Number(len(b)) + " groups"
	}
	return fmt.Sprintf("%s groups, revision %d", cli.Number(len(b)), b[0].RevisionNumber)
}

// row returns the row of a bundle: from when the first of its replicas was created, ready when all are.
func (b bundle) row() row {
	r := row{label: b.label(), detail: strings.ToLower(b[0].State)}
	if g := b[0]; len(b) == 1 {
		r.phases = g.Phases
	} else if g.CreateTime != nil {
		r.phases = b.joined()
	}
	if b[0].RevisionNumber > 0 {
		r.detail += ", revision " + strconv.FormatInt(b[0].RevisionNumber, 10)
	}
	if n := b.restarts(); n > 0 {
		r.detail += ", " + cli.Count(n, "restart")
	}
	if len(r.phases) > 0 {
		r.outcome = outcomeOpen
	}
	return r
}

func (b bundle) restarts() (sum int) {
	for _, g := range b {
		sum += g.Restarts
	}
	return sum
}

// joined returns the phases of several replicas of one state, of which each has some.
func (b bundle) joined() []Phase {
	first := *b[0].CreateTime
	ready := first
	end, last := b[0].Phases[0].End, b[0].Phases[0].Kind
	for _, g := range b {
		first = sooner(first, *g.CreateTime)
		if g.ReadyTime != nil {
			ready = later(ready, *g.ReadyTime)
		}
		for _, phase := range g.Phases {
			if phase.Open {
				end, last = phase.End, phase.Kind
			}
		}
	}
	build := &runBuilder{reached: first, now: end}
	build.until(Starting, ready)
	build.open(last)
	return build.out
}

// drawing implements View.
func (t *LeaderWorkerSetTimeline) drawing() *drawing {
	d := &drawing{
		kind: cli.LeaderWorkerSet, name: t.LeaderWorkerSet, namespace: t.Namespace, life: t.life(), use: t.use(), note: t.Note,
		begin: t.CreateTime, end: t.End, table: t.table, fill: t.fill, parts: "Groups",
	}
	for i := range t.Revisions {
		d.rows = append(d.rows, t.Revisions[i].row())
	}
	for _, b := range t.bundles() {
		d.rows = append(d.rows, b.row())
	}
	for _, r := range d.rows {
		for _, phase := range r.phases {
			d.begin, d.end = sooner(d.begin, phase.Begin), later(d.end, phase.End)
		}
	}
	return d
}

func (r *Revision) row() row {
	out := row{label: fmt.Sprintf("revision %d", r.Number), detail: cli.Clean(r.Key) + ", " + cli.Count(r.Replicas, "group"), phases: r.Phases}
	if r.Open {
		out.outcome = outcomeOpen
	}
	return out
}

// life says in few words how the set does.
func (t *LeaderWorkerSetTimeline) life() string {
	text := fmt.Sprintf("%s, %d of %s ready", t.Words(), t.ReplicasReady, cli.Count(t.ReplicasWanted, "group"))
	if t.ReplicasUpdated != t.ReplicasWanted {
		text += fmt.Sprintf(", %s updated", cli.Number(t.ReplicasUpdated))
	}
	return text + ", age " + cli.Seconds(t.LifeSeconds)
}

// use says how often replicas failed, and what a user did last.
func (t *LeaderWorkerSetTimeline) use() string {
	var parts []string
	if t.Restarts > 0 {
		text := cli.Count(t.Restarts, "restart") + " after failures"
		if t.RestartLimit != nil {
			text += fmt.Sprintf(", at most %d of each group", *t.RestartLimit)
		}
		parts = append(parts, text)
	}
	if last := t.LastAction; last != nil {
		text := "last action: " + cli.Clean(string(last.Action))
		if last.Group != nil {
			text += fmt.Sprintf(" of group %d", *last.Group)
		}
		if last.Revision > 0 {
			text += fmt.Sprintf(" to revision %d", last.Revision)
		}
		if last.User != "" {
			text += " by " + cli.Clean(last.User)
		}
		if last.Time != nil {
			text += " " + cli.Ago(t.End, last.Time.Time)
		}
		if last.Reason != "" {
			text += ": " + cli.Clean(last.Reason)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
