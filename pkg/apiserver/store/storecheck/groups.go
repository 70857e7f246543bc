// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// Route says who answers for an API group in the main cluster.
type Route struct {
	// Elsewhere says that kube-apiserver answers itself, from a CustomResourceDefinition.
	Elsewhere bool
	// UID is the UID of the APIService, and empty if there is none. A group without one is served to clients that call the server itself.
	UID types.UID
	// Version is the resource version of the APIService. It changes with the status, too.
	Version string
}

// same returns whether the group is answered for as under another route.
func (r Route) same(other Route) bool { return r.Elsewhere == other.Elsewhere && r.UID == other.UID }

// groups is what the server knows about its API groups while it serves the store. A group is served when it was looked
// at under the APIService that routes it. One that kube-apiserver serves from a CustomResourceDefinition gets objects that
// this server does not see, so that it is looked at again when it comes back. It belongs to the goroutine that runs.
type groups struct {
	// listed are the groups that were looked at.
	listed witness.Groups
	// changes of the list are not in both halves of the witness yet: a UID to add, or nil to remove.
	changes map[string]*types.UID
	// vacant are groups that kube-apiserver serves, whose definitions had no objects that the store does not have when they were looked at
	// last.
	vacant sets.Set[string]
	// seen are the routes when they were read last, and looked is when that was.
	seen   map[string]Route
	looked time.Time
	// unsure are groups whose APIService changed while the routes were not read: it may have given the group away and taken it back. They are
	// served on while they are looked at.
	unsure sets.Set[string]
	// search is what runs in the background; nil if nothing does.
	search *groupSearch
	// asked means that an acceptance waits until the objects are counted again, and answered that they were.
	asked, answered bool
	// refused are the groups of which something would be lost, with the routes under which that was found.
	refused map[string]Route
	// counted is when that was found.
	counted  time.Time
	lastText string
}

const (
	// routesInterval is how often the routes are read while all groups are served. While one is not, they are read in each round.
	routesInterval = 6 * time.Second
	// vacantInterval is how often the definitions of groups are looked at that kube-apiserver serves.
	vacantInterval = 10 * time.Second
	// routesGap is after which time without the routes a change of an APIService counts as unseen.
	routesGap = 3 * routesInterval
)

// routedHere returns the groups for which kube-apiserver does not answer itself.
func (s *observation) routedHere() sets.Set[string] {
	groups := sets.New[string]()
	for group, route := range s.routes {
		if !route.Elsewhere {
			groups.Insert(group)
		}
	}
	return groups
}

// listed returns groups as the witness lists them.
func (s *observation) listed(looked sets.Set[string]) witness.Groups {
	list := witness.Groups{}
	for group := range looked {
		list[group] = s.routes[group].UID
	}
	return list
}

// beginGroups decides which groups are served from the beginning, before the server serves anything.
func (g *Guard) beginGroups(ctx context.Context, s *observation) error {
	var recorded witness.Groups
	if s.record != nil {
		recorded = s.record.Groups
	}
	g.groups = groups{listed: witness.Common(s.key.Groups, recorded), vacant: sets.New[string](), unsure: sets.New[string](),
		looked: time.Now()}
	if g.groups.listed == nil {
		if err := g.listCreated(ctx, s); err != nil {
			return err
		}
	}
	for group := range g.groups.listed {
		if _, known := s.routes[group]; !known { // it is switched off, and may be served by another server meanwhile
			g.groups.change(group, nil)
		}
	}
	g.apply(ctx, s.routes)
	return nil
}

// listCreated lists the groups of a store whose last server did not know the list. One that has created objects has served their group.
func (g *Guard) listCreated(ctx context.Context, s *observation) error {
	g.groups.listed = witness.Groups{}
	for group, route := range s.routes {
		created, err := g.Created(ctx, group)
		if err != nil {
			return err
		}
		if created {
			g.groups.change(group, &route.UID)
		}
	}
	return nil
}

// change changes the list.
func (l *groups) change(group string, uid *types.UID) {
	if uid == nil {
		delete(l.listed, group)
	} else {
		l.listed[group] = *uid
	}
	if l.changes == nil {
		l.changes = map[string]*types.UID{}
	}
	l.changes[group] = uid
}

// apply closes the groups that may not be served under their routes, opens the others, and returns those that have to be looked at.
func (g *Guard) apply(ctx context.Context, routes map[string]Route) (pending sets.Set[string]) {
	pending = sets.New[string]()
	closed := map[string]witness.Reason{}
	for group, route := range routes {
		_, looked := g.groups.listed[group]
		switch refused, found := g.groups.refused[group]; {
		case route.Elsewhere:
			closed[group] = witness.ReasonNotRouted
			if looked {
				g.groups.change(group, nil)
			}
			delete(g.groups.refused, group)
			g.groups.search.forget(group)
			continue
		case g.groups.has(group, route) && !g.groups.unsure.Has(group):
			continue
		case found && refused.same(route):
			closed[group] = g.refusal.Reason
		case !looked || !g.groups.followed(group):
			closed[group] = witness.ReasonNotChecked
		}
		pending.Insert(group)
	}
	g.groups.seen = routes
	g.close(ctx, closed)
	return pending
}

// has returns whether a group was looked at under its APIService.
func (l *groups) has(group string, route Route) bool {
	uid, looked := l.listed[group]
	return looked && uid == route.UID
}

// followed returns whether this process has seen the group at its last look, and not served by kube-apiserver. Then nothing can have
// created objects of the group elsewhere, and it is served on while it is looked at under a new APIService.
func (l *groups) followed(group string) bool {
	route, seen := l.seen[group]
	return seen && !route.Elsewhere
}

// close publishes which groups are not served.
func (g *Guard) close(ctx context.Context, closed map[string]witness.Reason) {
	var before map[string]witness.Reason
	if old := g.unserved.Swap(&closed); old != nil {
		before = *old
	}
	if !maps.Equal(before, closed) {
		klog.FromContext(ctx).Info("API groups of the store that are not served", "groups", closed)
	}
}

// Closed returns why a group is not served although the server serves the store; it is empty if it is served.
func (g *Guard) Closed(group string) witness.Reason {
	closed := g.unserved.Load()
	if closed == nil {
		return ""
	}
	return (*closed)[group]
}

// lookAtGroups reads the routes, and looks at groups that are not served yet. Searches run in the background: what else
// the guard does must not wait for them.
func (g *Guard) lookAtGroups(ctx context.Context) {
	err := g.lookOnce(ctx)
	text := ""
	if err != nil {
		text = err.Error()
	}
	if err != nil && text != g.groups.lastText && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot look at the API groups; those that are not served stay so")
	}
	g.groups.lastText = text
}

func (g *Guard) lookOnce(ctx context.Context) error {
	g.followKey(ctx)
	if err := g.endSearch(ctx); err != nil {
		return err
	}
	if closed := g.unserved.Load(); len(*closed) == 0 && time.Since(g.groups.looked) < routesInterval {
		return nil
	}
	begun := time.Now()
	reading, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	routes, err := g.Routes(reading)
	if err != nil {
		return err
	}
	g.groups.note(routes, begun)
	pending := g.apply(ctx, routes)
	if len(g.groups.refused) > 0 || g.refusal != nil {
		if err := g.publishGroups(ctx); err != nil {
			return err
		}
	}
	g.beginSearch(ctx, routes, pending)
	return nil
}

// note remembers when routes were read, and which groups may have been given away since they were read before.
func (l *groups) note(routes map[string]Route, begun time.Time) {
	if begun.Sub(l.looked) > routesGap {
		for group, route := range routes {
			if l.has(group, route) && l.seen[group].Version != route.Version {
				l.unsure.Insert(group)
			}
		}
	}
	l.looked = begun
}

// followKey closes groups that another server has taken from the list in the key: it saw kube-apiserver serve them while this server could
// not read the routes, or between two reads.
func (g *Guard) followKey(ctx context.Context) {
	g.mu.Lock()
	listed := g.known.groups
	g.mu.Unlock()
	if listed == nil {
		return // an older version wrote the key
	}
	taken := false
	for group := range g.groups.listed {
		_, found := listed[group]
		if _, pending := g.groups.changes[group]; !found && !pending {
			delete(g.groups.listed, group)
			g.groups.search.forget(group)
			taken = true
		}
	}
	if taken {
		g.apply(ctx, g.groups.seen)
	}
}

// unservedGroup is the message about a group that is not served.
func unservedGroup(group string, reason witness.Reason) string {
	if reason == witness.ReasonNotRouted {
		return fmt.Sprintf("the server does not serve %s (%s): kube-apiserver serves the group from a CustomResourceDefinition", group, reason)
	}
	return fmt.Sprintf("the server does not serve %s (%s); %s in the main cluster says why", group, reason, recordName)
}

func sorted(groups map[string]Route) []string { return slices.Sorted(maps.Keys(groups)) }
