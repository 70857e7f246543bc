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

// GroupsTop is what -o json prints of a LeaderWorkerSet. Its fields are described in docs/kubectl.md.
type GroupsTop struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	snapshot.GroupsSummary
	// Revision is the key of the current revision. Absent before the leader StatefulSet exists.
	Revision string `json:"revision,omitempty"`
	Totals
	// Restarts is the sum of the restarts of groups after failures, and RestartLimit how many each of them may have; absent for no limit.
	Restarts     int    `json:"restarts"`
	RestartLimit *int32 `json:"restartLimit,omitempty"`
	// Groups are the groups that exist or should, by index.
	Groups []PodGroup `json:"groups"`
	Placement
}

// PodGroup is a leader with its workers.
type PodGroup struct {
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
	g, err := snapshot.LoadGroups(ctx, c, name, true)
	if err != nil {
		return nil, err
	}
	return groups{g}, nil
}

// groups is a LeaderWorkerSet as a Subject.
type groups struct{ *snapshot.Groups }

func (g groups) placed() []*corev1.Pod { return g.Pods() }

func (g groups) topology() string { return "" }

func (g groups) figures(domainLabel string, domains map[string]string) View {
	return newGroups(g.Groups, domainLabel, domains)
}

// newGroups derives the figures from what was read. Domains are by name of node, nil when they are not known.
func newGroups(s *snapshot.Groups, domainLabel string, domains map[string]string) *GroupsTop {
	set := s.Set
	t := &GroupsTop{
		Name: set.Name, Namespace: set.Namespace, GroupsSummary: snapshot.SummarizeGroups(set), Revision: s.Revision(),
		Totals: Totals{Requests: Resources{}}, RestartLimit: set.Spec.LeaderWorkerTemplate.MaxGroupRestarts, Groups: []PodGroup{},
		Placement: Placement{DomainLabel: domainLabel},
	}
	for i := range set.Status.Groups {
		t.Restarts += int(set.Status.Groups[i].Restarts)
	}
	places := newPlaces(domains)
	for _, group := range s.Every() {
		out := PodGroup{
			Index: group.Index, Revision: group.Revision(), Updated: s.Updated(group), Surge: s.Surge(group), Restarts: group.Restarts(),
			Requests: Resources{},
		}
		out.State, _ = s.StateOf(group)
		out.Pods.Wanted = s.Size(group)
		for _, pod := range group.Pods {
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
		t.Groups = append(t.Groups, out)
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
func (t *GroupsTop) Lines(terminal cli.Terminal, all bool) []string {
	resources := t.resources()
	columns := withResources(resources, cli.Column{Title: "GROUP"}, cli.Column{Title: "STATE"}, cli.Column{Title: "PODS READY"},
		cli.Column{Title: "RESTARTS", Drop: dropOther}, cli.Column{Title: "REVISION", Drop: dropOther})
	lines := append(t.facts(terminal, resources), table(terminal, columns, t.rows(terminal, resources, all))...)
	return append(lines, t.Placement.lines(terminal, resources, all)...)
}

// facts are the lines about the set as a whole.
func (t *GroupsTop) facts(terminal cli.Terminal, resources []corev1.ResourceName) []string {
	ready := fmt.Sprintf("%s of %s ready, %s updated, of %s each", cli.Number(t.GroupsReady), cli.Number(t.GroupsWanted),
		cli.Number(t.GroupsUpdated), cli.Count(t.GroupSize, "pod"))
	rows := [][]string{
		{"Set", cli.LeaderWorkerSet.Names[0] + "/" + t.Name + ", " + terminal.Paint(groupsColor(t.State), t.Words())},
		{"Groups", terminal.Paint(shareColor(t.GroupsReady, t.GroupsWanted), ready)},
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

// rows are the groups, those with most pods that are not ready first.
func (t *GroupsTop) rows(terminal cli.Terminal, resources []corev1.ResourceName, all bool) [][]string {
	ordered := slices.Clone(t.Groups)
	slices.SortStableFunc(ordered, func(a, b PodGroup) int { return cmp.Compare(b.Pods.lacking(), a.Pods.lacking()) })
	var rows [][]string
	for i := range ordered {
		if !all && i == mostGroups && len(ordered) > mostGroups+1 {
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

func groupsColor(state string) cli.Color {
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
