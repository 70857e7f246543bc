// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strconv"
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

var replicaColors = map[string]cli.Color{
	snapshot.JobReady: cli.Good, snapshot.JobFailed: cli.Bad, snapshot.JobStarting: cli.Busy, snapshot.JobTerminating: cli.Busy,
	snapshot.Missing: cli.Busy, snapshot.Removed: cli.Quiet,
}

// The columns of the tables of revisions and replicas. Nothing of them is cut.
var (
	revisionColumns = []cli.Column{
		{Title: "REVISION"}, {Title: "KEY"}, {Title: "BEGAN", Least: 8, Wrap: true, Drop: 1, Label: "began: "},
		{Title: "UPDATED IN", Least: 10, Wrap: true, Drop: 2, Label: "updated in: "}, {Title: "GROUPS"},
	}
	replicaColumns = []cli.Column{
		{Title: "GROUP"}, {Title: "REVISION", Least: 10, Wrap: true, Drop: 2, Label: "revision: "}, {Title: "CREATED", Least: 7, Wrap: true,
			Drop: 1, Label: "created: "},
		{Title: "READY SINCE", Least: 11, Wrap: true, Drop: 3, Label: "ready since: "}, {Title: "RESTARTS"}, {Title: "STATE"},
		{Title: "MESSAGE", Least: 24, Wrap: true, Drop: 4, Label: "message: "},
	}
)

// table writes a line for each revision, and then for each replica. When a replica was last recreated, and why, follows in a line of its
// own.
func (t *LeaderWorkerSetTimeline) table(b *strings.Builder, s screen) {
	if len(t.Revisions) > 0 {
		var rows [][]string
		for i := range t.Revisions {
			r := &t.Revisions[i]
			rows = append(rows, []string{strconv.FormatInt(r.Number, 10), cli.Clean(r.Key), t.clock(&r.Begin, s.zone), r.updatedIn(),
				cli.Number(r.Replicas)})
		}
		lines(b, s.Table(revisionColumns, rows))
		b.WriteString("\n")
	}
	lines(b, s.Table(replicaColumns, t.replicaRows(s, t.bundles(), "")))
}

// replicaRows returns the rows of the table of replicas, whose names begin with the prefix.
func (t *LeaderWorkerSetTimeline) replicaRows(s screen, bundles []bundle, prefix string) (rows [][]string) {
	for _, bundle := range bundles {
		g := bundle[0]
		rows = append(rows, []string{
			prefix + bundle.name(), g.revision(), t.clock(bundle.created(), s.zone), t.clock(bundle.ready(), s.zone), cli.Number(bundle.restarts()),
			s.Paint(replicaColors[g.State], g.State), g.message(),
		})
		if len(bundle) == 1 {
			rows = append(rows, t.record(g, s)...)
		}
	}
	return rows
}

// record says when the replica was last recreated, and why it failed last.
func (t *LeaderWorkerSetTimeline) record(g *ReplicaRun, s screen) (lines [][]string) {
	if g.LastRestartTime != nil {
		lines = append(lines, s.detail(cli.Quiet, "recreated: "+t.clock(&g.LastRestartTime.Time, s.zone)))
	}
	if g.FirstCause != nil {
		text := replicaCauseOf(g.FirstCause)
		if failed := failureOf(g); !failed.IsZero() {
			text = t.clock(&failed, s.zone) + ", " + text
		}
		lines = append(lines, s.detail(cli.Bad, "first cause: "+text))
	}
	return lines
}

// clock is a time of the set: with its date if the set is older than a day.
func (t *LeaderWorkerSetTimeline) clock(at *time.Time, zone *time.Location) string {
	switch {
	case at == nil:
		return "-"
	case t.End.Sub(t.CreateTime) < day:
		return at.In(zone).Format("15:04:05")
	}
	return at.In(zone).Format("Jan 2 15:04")
}

func (r *Revision) updatedIn() string {
	switch {
	case r.UpdateSeconds != nil:
		return cli.Seconds(*r.UpdateSeconds)
	case r.Open && len(r.Phases) > 0 && r.Phases[len(r.Phases)-1].Kind != Current:
		return string(r.Phases[len(r.Phases)-1].Kind)
	}
	return "-"
}

// name is the index of a replica, or the number of several.
func (b bundle) name() string {
	if len(b) == 1 {
		return strconv.Itoa(b[0].Index)
	}
	return cli.Count(len(b), "group")
}

// created is when the first replica was.
func (b bundle) created() (first *time.Time) {
	for _, g := range b {
		if g.CreateTime != nil && (first == nil || g.CreateTime.Before(*first)) {
			first = g.CreateTime
		}
	}
	return first
}

// ready is since when all replicas are ready.
func (b bundle) ready() (last *time.Time) {
	for _, g := range b {
		switch {
		case g.ReadyTime == nil:
			return nil
		case last == nil || g.ReadyTime.After(*last):
			last = g.ReadyTime
		}
	}
	return last
}

// revision is the number of the revision of the replica, or else its key.
func (g *ReplicaRun) revision() string {
	switch {
	case g.RevisionNumber > 0:
		return strconv.FormatInt(g.RevisionNumber, 10)
	case g.Revision != "":
		return cli.Clean(g.Revision)
	}
	return "-"
}

// message explains the state of the replica.
func (g *ReplicaRun) message() string {
	if g.Surge {
		return cli.Clean("surge " + g.Message)
	}
	return cli.Clean(g.Message)
}

// viewReplica is a replica, or several, on the page.
type viewReplica struct {
	Name, Revision, Created, Ready, State, Class, Message, Recreated, FirstCause string
	Restarts                                                                     int
}

// viewRevision is a revision on the page.
type viewRevision struct {
	Number              int64
	Key, Began, Updated string
	Replicas            int
}

// replicaClasses are the colors of states on the page.
var replicaClasses = map[string]string{
	snapshot.JobReady: "completed", snapshot.JobFailed: "failed", snapshot.JobStarting: "starting", snapshot.JobTerminating: "starting",
	snapshot.Missing: "starting",
}

// fill puts the revisions and replicas into the page.
func (t *LeaderWorkerSetTimeline) fill(v *view, zone *time.Location) {
	for i := range t.Revisions {
		r := &t.Revisions[i]
		v.Revisions = append(v.Revisions, viewRevision{Number: r.Number, Key: cli.Clean(r.Key), Began: clock(r.Begin, zone),
			Updated: r.updatedIn(), Replicas: r.Replicas})
	}
	t.fillReplicas(v, zone, t.bundles(), "")
}

// fillReplicas puts replicas into the page, whose names begin with the prefix.
func (t *LeaderWorkerSetTimeline) fillReplicas(v *view, zone *time.Location, bundles []bundle, prefix string) {
	long := func(at *time.Time) string {
		if at == nil {
			return "-"
		}
		return clock(*at, zone)
	}
	for _, bundle := range bundles {
		g := bundle[0]
		out := viewReplica{
			Name: prefix + bundle.name(), Revision: g.revision(), Created: long(bundle.created()), Ready: long(bundle.ready()),
			Restarts: bundle.restarts(), State: g.State, Class: replicaClasses[g.State], Message: g.message(),
		}
		if len(bundle) == 1 {
			out.record(g, long)
		}
		v.Replicas = append(v.Replicas, out)
	}
}

// record adds when the replica was last recreated, and why it failed last.
func (v *viewReplica) record(g *ReplicaRun, clock func(*time.Time) string) {
	if g.LastRestartTime != nil {
		v.Recreated = clock(&g.LastRestartTime.Time)
	}
	if g.FirstCause != nil {
		v.FirstCause = replicaCauseOf(g.FirstCause)
		if failed := failureOf(g); !failed.IsZero() {
			v.FirstCause = clock(&failed) + ", " + v.FirstCause
		}
	}
}
