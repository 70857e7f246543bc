// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// LeaderWorkerSetTop is what -o json prints of a LeaderWorkerSet. Its fields are described in docs/kubectl.md.
type LeaderWorkerSetTop struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	snapshot.LeaderWorkerSetSummary
	// Revision is the key of the current revision. Absent before the leader StatefulSet exists.
	Revision string `json:"revision,omitempty"`
	Totals
	// Restarts is the sum of the restarts of replicas after failures, and RestartLimit how many each of them may have; absent for no limit.
	Restarts     int    `json:"restarts"`
	RestartLimit *int32 `json:"restartLimit,omitempty"`
	// Replicas are the replicas that exist or should, by index.
	Replicas []Replica `json:"groups"`
	Placement
}

// Replica is a leader with its workers.
type Replica struct {
	Index    int       `json:"index"`
	State    string    `json:"state"`
	Revision string    `json:"revision,omitempty"`
	Updated  bool      `json:"updated"`
	Surge    bool      `json:"surge,omitempty"`
	Pods     Pods      `json:"pods"`
	Restarts int       `json:"restarts"`
	Requests Resources `json:"requests"`
}

// LeaderWorkerSet is the Loader of LeaderWorkerSets.
func LeaderWorkerSet(ctx context.Context, c *cli.Clients, name string) (Subject, error) {
	return snapshot.Read(ctx, c, name, snapshot.LoadLeaderWorkerSet, func(set *snapshot.LeaderWorkerSet) Subject {
		return leaderWorkerSet{set}
	})
}

// leaderWorkerSet is a LeaderWorkerSet as a Subject.
type leaderWorkerSet struct{ *snapshot.LeaderWorkerSet }

func (g leaderWorkerSet) placed() []*corev1.Pod { return g.Pods() }

func (g leaderWorkerSet) topology() string { return "" }

func (g leaderWorkerSet) figures(domainLabel string, domains map[string]string) View {
	return newLeaderWorkerSet(g.LeaderWorkerSet, domainLabel, domains)
}

// newLeaderWorkerSet derives the figures from what was read. Domains are by name of node, nil when they are not known.
func newLeaderWorkerSet(s *snapshot.LeaderWorkerSet, domainLabel string, domains map[string]string) *LeaderWorkerSetTop {
	set := s.Set
	t := &LeaderWorkerSetTop{
		Name: set.Name, Namespace: set.Namespace, LeaderWorkerSetSummary: snapshot.SummarizeLeaderWorkerSet(set), Revision: s.Revision(),
		Totals: Totals{Requests: Resources{}}, RestartLimit: set.Spec.LeaderWorkerTemplate.MaxGroupRestarts, Replicas: []Replica{},
		Placement: Placement{DomainLabel: domainLabel},
	}
	for i := range set.Status.Groups {
		t.Restarts += int(set.Status.Groups[i].Restarts)
	}
	places := newPlaces(domains)
	for _, replica := range s.Every() {
		out := Replica{
			Index: replica.Index, Revision: replica.Revision(), Updated: s.Updated(replica), Surge: s.Surge(replica), Restarts: replica.Restarts(),
			Requests: Resources{},
		}
		out.State, _ = s.StateOf(replica)
		out.Pods.Wanted = s.Size(replica)
		for _, pod := range replica.Pods {
			if !snapshot.PodEnded(pod) {
				requests := snapshot.PodRequests(&pod.Spec)
				places.add(pod, requests)
				snapshot.AddResources(out.Requests, requests)
			}
			out.Pods.add(pod, pod.DeletionTimestamp != nil)
		}
		if set.DeletionTimestamp != nil {
			out.Pods.removed()
		}
		t.Pods.join(out.Pods)
		snapshot.AddResources(t.Requests, out.Requests)
		t.Replicas = append(t.Replicas, out)
	}
	t.Nodes, t.Domains = places.sorted()
	return t
}

// join adds the pods of a part.
func (p *Pods) join(part Pods) {
	p.Wanted += part.Wanted
	p.Existing += part.Existing
	p.Ready += part.Ready
	p.Succeeded += part.Succeeded
	p.Failed += part.Failed
	p.Leaving += part.Leaving
	p.Removed += part.Removed
}

// Lines implements View.
func (t *LeaderWorkerSetTop) Lines(terminal cli.Terminal, all bool) []string {
	resources := t.resources()
	columns := withResources(resources, cli.Column{Title: "GROUP"}, cli.Column{Title: "STATE"}, cli.Column{Title: "PODS READY"},
		cli.Column{Title: "RESTARTS", Drop: dropOther}, cli.Column{Title: "REVISION", Drop: dropOther})
	lines := append(t.facts(terminal, resources), table(terminal, columns, t.rows(terminal, resources, all))...)
	return append(lines, t.Placement.lines(terminal, resources, all)...)
}

// facts are the lines about the set as a whole.
func (t *LeaderWorkerSetTop) facts(terminal cli.Terminal, resources []corev1.ResourceName) []string {
	ready := fmt.Sprintf("%s of %s ready, %s updated, of %s each", cli.Number(t.ReplicasReady), cli.Number(t.ReplicasWanted),
		cli.Number(t.ReplicasUpdated), cli.Count(t.ReplicaSize, "pod"))
	rows := [][]string{
		{"Set", cli.LeaderWorkerSet.Names[0] + "/" + t.Name + ", " + terminal.Paint(leaderWorkerSetColor(t.State), t.Words())},
		{"Groups", terminal.Paint(shareColor(t.ReplicasReady, t.ReplicasWanted), ready)},
	}
	rows = append(rows, t.Totals.facts(terminal, resources, "terminating")...)
	if t.Restarts > 0 || t.RestartLimit != nil {
		text := cli.Number(t.Restarts) + " of groups after failures"
		if t.RestartLimit != nil {
			text += fmt.Sprintf(", at most %d of each", *t.RestartLimit)
		}
		rows = append(rows, []string{"Restarts", text})
	}
	return written(terminal, rows)
}

// rows are the replicas, those with most pods that are not ready first.
func (t *LeaderWorkerSetTop) rows(terminal cli.Terminal, resources []corev1.ResourceName, all bool) [][]string {
	ordered := slices.Clone(t.Replicas)
	slices.SortStableFunc(ordered, func(a, b Replica) int { return cmp.Compare(b.Pods.lacking(), a.Pods.lacking()) })
	var rows [][]string
	for i := range ordered {
		if !all && i == mostRows && len(ordered) > mostRows+1 {
			pods, lacking := 0, 0
			for _, rest := range ordered[i:] {
				pods, lacking = pods+rest.Pods.Wanted, lacking+rest.Pods.lacking()
			}
			return append(rows, []string{fmt.Sprintf("%s with %s, %s of them not ready", more(len(ordered)-i, "group"), cli.Count(pods, "pod"),
				cli.Number(lacking))})
		}
		g := &ordered[i]
		name := strconv.Itoa(g.Index)
		if g.Surge {
			name += " (surge)"
		}
		rows = append(rows, append([]string{
			name, g.State, terminal.Paint(g.Pods.color(), fmt.Sprintf("%d/%d", g.Pods.Ready, g.Pods.Wanted)), cli.Number(g.Restarts),
			cmp.Or(cli.Clean(g.Revision), "-"),
		}, cells(resources, g.Requests)...))
	}
	return rows
}

// lacking is the number of pods that are not ready.
func (p *Pods) lacking() int { return p.Wanted - p.Removed - p.Ready - p.Succeeded }

func leaderWorkerSetColor(state string) cli.Color {
	switch state {
	case lwshelper.PhaseAvailable:
		return cli.Good
	case lwshelper.PhaseFailed:
		return cli.Bad
	case lwshelper.PhasePaused, lwshelper.PhaseTerminating:
		return cli.Quiet
	}
	return cli.Busy
}
