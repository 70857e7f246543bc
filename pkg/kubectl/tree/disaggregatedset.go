// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Roles is a DisaggregatedSet, and what -o json prints. Its fields are described in docs/kubectl.md.
type Roles struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	snapshot.RolesSummary
	// Revision is the current revision. Absent if it is not known.
	Revision   string      `json:"revision,omitempty"`
	CreateTime metav1.Time `json:"createTime"`
	// LeaderWorkerSets are the existing LeaderWorkerSets, those of the current revision first, and then the missing ones.
	LeaderWorkerSets []RoleSet `json:"leaderWorkerSets"`
}

// RoleSet is the LeaderWorkerSet of a role in a slice.
type RoleSet struct {
	Role  string `json:"role"`
	Slice int    `json:"slice"`
	// Current reports that the LeaderWorkerSet is of the current revision, and of a role and slice of the spec.
	Current bool `json:"current"`
	*LeaderWorkerSetTree
}

// DisaggregatedSet is the Loader of DisaggregatedSets.
func DisaggregatedSet(ctx context.Context, c *cli.Clients, name string) (View, error) {
	r, err := snapshot.LoadRoles(ctx, c, name)
	if err != nil {
		return nil, err
	}
	return newRoles(r), nil
}

// newRoles derives the tree from what was read.
func newRoles(r *snapshot.Roles) *Roles {
	set := r.Set
	t := &Roles{
		Name: set.Name, Namespace: set.Namespace, RolesSummary: snapshot.SummarizeRoles(set), Revision: r.Revision,
		CreateTime:       set.CreationTimestamp,
		LeaderWorkerSets: []RoleSet{},
	}
	for _, s := range r.Sets {
		t.LeaderWorkerSets = append(t.LeaderWorkerSets,
			RoleSet{Role: s.Role, Slice: s.Slice, Current: r.Current(s), LeaderWorkerSetTree: newLeaderWorkerSet(s.Children)})
	}
	for _, s := range r.Absent() {
		missing := &LeaderWorkerSetTree{
			Name: helper.SetName(set.Name, int32(s.Slice), s.Revision, s.Role), Namespace: set.Namespace, Replicas: []Replica{},
		}
		missing.Phase = snapshot.Phase{State: Missing, Message: "not created yet; ask `kubectl jobset why dset/" + set.Name + "` if this stays"}
		if set.DeletionTimestamp != nil {
			missing.Phase = snapshot.Phase{State: Removed, Message: "the set is being deleted"}
		}
		t.LeaderWorkerSets = append(t.LeaderWorkerSets, RoleSet{Role: s.Role, Slice: s.Slice, Current: true, LeaderWorkerSetTree: missing})
	}
	return t
}

// Lines implements View.
func (t *Roles) Lines(terminal cli.Terminal, now time.Time, all bool) []string {
	return linesWithRevisions(terminal, t.items(now, all))
}

// items returns the set with its LeaderWorkerSets, and as many of their replicas as are to be shown.
func (t *Roles) items(now time.Time, all bool) item {
	top := item{
		name: "disaggregatedset/" + t.Name, state: t.State, ready: t.RoleCounts.ReadyOf(), age: age(now, &t.CreateTime), revision: t.Revision,
		severity: leaderWorkerSetSeverity[t.State],
	}
	if top.severity != well && t.Reason != "" {
		top.message = oneLine(t.Reason + ": " + t.Message)
	}
	var jobs []*Job
	pods, restarts := 0, 0
	for i := range t.LeaderWorkerSets {
		more, n := t.LeaderWorkerSets[i].units(all)
		jobs, pods, restarts = append(jobs, more...), pods+n, restarts+t.LeaderWorkerSets[i].Restarts
	}
	top.restarts = strconv.Itoa(restarts)
	chosen := choose(jobs, pods, all)
	for i := range t.LeaderWorkerSets {
		top.children = append(top.children, t.LeaderWorkerSets[i].item(now, chosen))
	}
	return top
}

// item returns the LeaderWorkerSet with the chosen replicas below it.
func (s *RoleSet) item(now time.Time, chosen choice) item {
	it := s.itemsOf(now, chosen)
	switch {
	case s.State == Missing || s.State == Removed:
		it.ready, it.restarts, it.message, it.severity = "", "", s.Message, starting
	case !s.Current:
		it.message = strings.TrimSuffix("of an earlier revision; "+it.message, "; ")
	}
	return it
}

var _ View = (*Roles)(nil)
