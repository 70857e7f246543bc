// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// groupSearch looks at groups in the background.
type groupSearch struct {
	routes  map[string]Route
	pending sets.Set[string]
	// void are the groups that kube-apiserver has served since: nothing is known of them.
	void sets.Set[string]
	// unsure are the groups that are served while they are looked at.
	unsure sets.Set[string]
	// asked means that it began after an acceptance was seen.
	asked bool
	done  chan struct{}

	// These are set when it is done.
	clean   sets.Set[string]
	refused sets.Set[string]
	// found is what keeps the refused groups from being served.
	found  *finding
	vacant sets.Set[string]
	err    error
}

// forget lets the search say nothing about a group. There may be no search.
func (s *groupSearch) forget(group string) {
	if s == nil {
		return
	}
	if s.void == nil {
		s.void = sets.New[string]()
	}
	s.void.Insert(group)
}

// beginSearch starts a search unless one runs, or there is nothing to look at.
func (g *Guard) beginSearch(ctx context.Context, routes map[string]Route, pending sets.Set[string]) {
	l := &g.groups
	elsewhere := sets.New[string]()
	for group, route := range routes {
		if route.Elsewhere {
			elsewhere.Insert(group)
		}
	}
	again := len(l.refused) == 0 || g.refusal.due() || pending.Difference(sets.KeySet(l.refused)).Len() > 0
	if pending.Len() == 0 || !again {
		pending = nil
		if time.Since(l.counted) < vacantInterval {
			return
		}
	}
	if l.search != nil || pending.Len()+elsewhere.Len() == 0 {
		return
	}
	s := &groupSearch{routes: routes, pending: pending, asked: l.asked, done: make(chan struct{}), vacant: l.vacant.Intersection(pending),
		unsure: sets.New[string]()}
	for group := range l.unsure.Intersection(pending) {
		if l.has(group, routes[group]) {
			s.unsure.Insert(group)
		}
	}
	listed := maps.Clone(l.listed)
	l.search = s
	go func() {
		defer close(s.done)
		ctx, cancel := g.ending.until(ctx)
		defer cancel()
		s.err = g.run(ctx, s, pending, elsewhere, listed)
	}()
}

// run looks at the groups that are to be served, and then at those that kube-apiserver serves.
func (g *Guard) run(ctx context.Context, s *groupSearch, pending, elsewhere sets.Set[string], listed witness.Groups) error {
	vacant := s.vacant
	s.clean, s.refused, s.vacant = sets.New[string](), sets.New[string](), sets.New[string]()
	for group := range pending {
		_, before := listed[group]
		// A definition beside a group that was served is known, or was accepted: what counts is what would be lost.
		found, err := g.hinders(ctx, group, before, vacant.Has(group) || s.unsure.Has(group))
		if err != nil {
			return err
		}
		if found == nil {
			s.clean.Insert(group)
			continue
		}
		s.refused.Insert(group)
		s.found = found
	}
	if s.refused.Len() > 1 {
		found, err := g.find(ctx, s.refused, true)
		if err != nil {
			return err
		}
		s.found = found
	}
	for group := range elsewhere {
		found, err := g.Definitions(ctx, sets.New(group))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			s.vacant.Insert(group)
		}
	}
	return nil
}

// hinders returns what of a group would be lost or hidden; nil if nothing would. A group that was served before under another
// APIService, and for which there is no definition, can have got no objects from elsewhere. Its objects whose owners were
// deleted are left to the garbage collector.
func (g *Guard) hinders(ctx context.Context, group string, before, vacant bool) (*finding, error) {
	if before {
		if found, err := g.Definitions(ctx, sets.New(group)); err != nil || len(found) == 0 {
			return nil, err
		}
	}
	found, err := g.find(ctx, sets.New(group), true)
	if err != nil {
		return nil, err
	}
	if vacant {
		found.definitions = nil
	}
	if found.reason(true) == "" {
		return nil, nil
	}
	return found, nil
}

// endSearch uses what a search has found, if it has ended.
func (g *Guard) endSearch(ctx context.Context) error {
	l, s := &g.groups, g.groups.search
	if s == nil {
		return nil
	}
	select {
	case <-s.done:
	default:
		return nil
	}
	l.search = nil
	if s.err != nil {
		return s.err
	}
	l.vacant, l.counted, l.answered = s.vacant, time.Now(), s.asked
	l.unsure = l.unsure.Difference(s.pending)
	for group := range s.unsure.Intersection(s.refused).Difference(s.void) {
		l.change(group, nil)
	}
	for group := range s.clean.Difference(s.void) {
		g.open(ctx, group, s.routes[group])
	}
	if s.pending.Len() > 0 {
		l.refused = map[string]Route{}
	}
	for group := range s.refused.Difference(s.void) {
		if !l.has(group, s.routes[group]) { // an administrator may have accepted it meanwhile
			l.refused[group] = s.routes[group]
		}
	}
	if len(l.refused) > 0 && s.found != nil {
		g.refuseGroups(ctx, s.found)
	}
	return nil
}

// open lets a group be served from the next round on.
func (g *Guard) open(ctx context.Context, group string, route Route) {
	uid := route.UID
	g.groups.change(group, &uid)
	klog.FromContext(ctx).Info("An API group is served from now on", "group", group)
}

// refuseGroups notes why groups are refused.
func (g *Guard) refuseGroups(ctx context.Context, found *finding) {
	reason := found.reason(true)
	names := sorted(g.groups.refused)
	fresh := g.refusal == nil || g.refusal.Reason != reason || !slices.Equal(g.refusal.Groups, names)
	if fresh {
		g.refusal = &refusal{}
		g.refusal.Refusal = witness.Refusal{Reason: reason, Server: g.server, NewUUID: g.groupsID(names), Groups: names}
		show(reason)
	}
	g.count(ctx, sets.KeySet(g.groups.refused), found)
	g.describe(nil)
	if fresh {
		klog.FromContext(ctx).Error(nil, "API groups are refused", "groups", names, "reason", reason, "message", g.refusal.Message)
	}
}

// groupsID names a refusal of groups: all servers of this store find the same.
func (g *Guard) groupsID(names []string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := g.known.uuid
	for _, name := range names {
		id += "/" + name
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(id)).String()
}

// publishGroups writes the refusal of groups into the record, or takes it out when it is over. An acceptance by an administrator opens the
// groups.
func (g *Guard) publishGroups(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	cm, record, err := g.readRecord(ctx)
	if err != nil {
		return err
	}
	s := &observation{cm: cm, record: record}
	if len(g.groups.refused) == 0 {
		return g.endGroupsRefusal(ctx, s)
	}
	if record == nil {
		return nil // it is written again first
	}
	if !record.Accepts(&g.refusal.Refusal) {
		g.groups.asked, g.groups.answered = false, false
		return g.publish(ctx, s, false)
	}
	if losses := g.refusal.Losses(); losses.Any() && !record.Accepted.AbandonJobs {
		if !g.groups.answered { // an administrator may have released them since they were counted
			g.groups.asked, g.refusal.counted = true, time.Time{}
			return nil
		}
		g.groups.asked, g.groups.answered, record.Accepted = false, false, nil
		klog.FromContext(ctx).Error(nil, "API groups were accepted, but objects are at risk that were not abandoned", "objects", losses.String())
		return g.publish(ctx, s, true)
	}
	for group, route := range g.groups.refused {
		g.open(ctx, group, route)
	}
	g.groups.refused, g.groups.asked, g.groups.answered = nil, false, false
	g.record(false, "StoreAccepted", "An administrator has accepted that "+strings.Join(g.refusal.Groups, ", ")+" may be served from now on.")
	return g.endGroupsRefusal(ctx, s)
}

// endGroupsRefusal takes the refusal of groups out of the record.
func (g *Guard) endGroupsRefusal(ctx context.Context, s *observation) error {
	if g.refusal == nil {
		return nil
	}
	if s.record != nil && s.record.Refusal != nil && s.record.Refusal.NewUUID == g.refusal.NewUUID {
		s.record.Refusal, s.record.Accepted = nil, nil
		if err := g.writeRecord(ctx, s.cm, s.record); err != nil {
			return err
		}
		g.record(false, "StoreServed", "Nothing keeps "+strings.Join(g.refusal.Groups, ", ")+" from being served any more.")
	}
	g.refusal = nil
	show("")
	return nil
}
