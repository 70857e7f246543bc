// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Roles is the life of a DisaggregatedSet as data: what -o json prints, and what chart and page are drawn from.
type Roles struct {
	// DisaggregatedSet and Namespace name the set.
	DisaggregatedSet string `json:"disaggregatedSet"`
	Namespace        string `json:"namespace"`
	snapshot.RolesSummary
	// Revision is the current revision. Absent if it is not known.
	Revision string `json:"revision,omitempty"`
	// CreateTime is when it was created, and begin of the chart. End is the time of reading: a set does not finish.
	CreateTime time.Time `json:"createTime"`
	End        time.Time `json:"end"`
	// LifeSeconds is the time from creation to End.
	LifeSeconds float64 `json:"lifeSeconds"`
	// LeaderWorkerSets are the LeaderWorkerSets that exist, those of the current revision first.
	LeaderWorkerSets []RoleSet `json:"leaderWorkerSets"`
}

// RoleSet is the life of the LeaderWorkerSet of a role in a slice. Its revisions are not read: a change of a template makes another
// LeaderWorkerSet.
type RoleSet struct {
	Role  string `json:"role"`
	Slice int    `json:"slice"`
	// Current reports that the LeaderWorkerSet is of the current revision, and of a role and slice of the spec.
	Current bool `json:"current"`
	*LeaderWorkerSetTimeline
	// name distinguishes the LeaderWorkerSet from others in the chart: its role, or more of its own name if the role has several.
	name string
}

// DisaggregatedSet is the Reader of DisaggregatedSets.
func DisaggregatedSet(ctx context.Context, c *cli.Clients, name string, withJobs bool) (View, error) {
	if withJobs {
		return nil, errors.New("--jobs: a DisaggregatedSet has no Jobs; omit the flag")
	}
	r, err := snapshot.LoadRoles(ctx, c, name)
	if err != nil {
		return nil, err
	}
	return buildRoles(r), nil
}

// buildRoles works out the timeline of a set from what exists of it.
func buildRoles(r *snapshot.Roles) *Roles {
	set := r.Set
	t := &Roles{
		DisaggregatedSet: set.Name, Namespace: set.Namespace, RolesSummary: snapshot.SummarizeRoles(set), Revision: r.Revision,
		CreateTime: set.CreationTimestamp.UTC(), LeaderWorkerSets: []RoleSet{},
	}
	t.End = later(r.Now.UTC(), t.CreateTime)
	t.LifeSeconds = t.End.Sub(t.CreateTime).Seconds()
	sets := map[string]int{}
	for _, s := range r.Sets {
		sets[s.Role]++
	}
	for _, s := range r.Sets {
		out := RoleSet{Role: s.Role, Slice: s.Slice, Current: r.Current(s), name: s.Role,
			LeaderWorkerSetTimeline: buildLeaderWorkerSet(s.Children, nil)}
		if sets[s.Role] > 1 {
			out.name = strings.TrimPrefix(s.Name, set.Name+"-")
		}
		t.LeaderWorkerSets = append(t.LeaderWorkerSets, out)
	}
	return t
}

// bundles returns the replicas of each LeaderWorkerSet that have a row.
func (t *Roles) bundles() [][]bundle {
	groups := 0
	for i := range t.LeaderWorkerSets {
		groups += len(t.LeaderWorkerSets[i].LeaderWorkerSetTimeline.Replicas)
	}
	var out [][]bundle
	for i := range t.LeaderWorkerSets {
		most := len(t.LeaderWorkerSets[i].LeaderWorkerSetTimeline.Replicas)
		if groups > lanesShown {
			most = replicasShown / len(t.LeaderWorkerSets)
		}
		out = append(out, t.LeaderWorkerSets[i].bundlesOf(most))
	}
	return out
}

// drawing implements View.
func (t *Roles) drawing() *drawing {
	d := &drawing{
		kind: cli.DisaggregatedSet, name: t.DisaggregatedSet, namespace: t.Namespace, begin: t.CreateTime, end: t.End, parts: "Groups",
		life: fmt.Sprintf("%s, %d of %s ready, age %s", t.Words(), t.RolesReady, cli.Count(t.RoleCount, "role"), cli.Seconds(t.LifeSeconds)),
	}
	bundles := t.bundles()
	for i := range bundles {
		for _, b := range bundles[i] {
			r := b.row()
			r.label = t.LeaderWorkerSets[i].name + " " + r.label
			d.rows = append(d.rows, r)
			for _, phase := range r.phases {
				d.begin, d.end = sooner(d.begin, phase.Begin), later(d.end, phase.End)
			}
		}
	}
	if len(bundles) > 0 {
		d.table = func(b *strings.Builder, s screen) { t.table(b, s, bundles) }
	}
	d.fill = func(v *view, zone *time.Location) {
		for i := range bundles {
			t.LeaderWorkerSets[i].fillReplicas(v, zone, bundles[i], t.LeaderWorkerSets[i].name+" ")
		}
	}
	return d
}

// table writes a line for each LeaderWorkerSet with its numbers, and one for each of its replicas.
func (t *Roles) table(b *strings.Builder, s screen, bundles [][]bundle) {
	var rows [][]string
	for i := range t.LeaderWorkerSets {
		set := &t.LeaderWorkerSets[i]
		message := fmt.Sprintf("lws/%s, %s ready", set.LeaderWorkerSet, set.ReadyOf())
		if !set.Current {
			message += ", of an earlier revision"
		}
		rows = append(rows, []string{
			set.name, "-", set.clock(&set.CreateTime, s.zone), "-", cli.Number(set.Restarts), set.State, message,
		})
		rows = append(rows, set.replicaRows(s, bundles[i], set.name+" ")...)
	}
	lines(b, s.Table(replicaColumns, rows))
}
