// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// TestAcceptedGroups: an administrator accepts that groups are served as the store has them.
func TestAcceptedGroups(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.routes[lwsGroup] = elsewhere
	g := main.started(t, store)
	main.lostSets()
	main.routes[lwsGroup] = routed
	main.round(t, g)
	main.accept(t, main.record(t).Refusal, false)
	main.round(t, g)
	wantServed(t, g, witness.ReasonUnknownOwners)
	if record := main.record(t); record.Accepted != nil {
		t.Error("an acceptance that does not abandon what would be lost stays armed")
	}
	search(t, g)
	main.accept(t, main.record(t).Refusal, true)
	if err := g.publishGroups(t.Context()); err != nil {
		t.Fatal(err)
	}
	main.round(t, g) // what the search has found is not true any more
	wantServed(t, g, "")
	if record := main.record(t); record.Refusal != nil || record.Accepted != nil || record.Groups[lwsGroup] != "service" {
		t.Errorf("the record is %+v", record)
	}
}

// search starts a search and waits until it has ended. Nothing uses its result yet.
func search(t *testing.T, g *Guard) {
	t.Helper()
	later(g)
	if err := g.lookOnce(t.Context()); err != nil || g.groups.search == nil {
		t.Fatalf("no search runs: %v", err)
	}
	<-g.groups.search.done
}

// TestAcceptedGroupsOfReleasedObjects: what an administrator has released just before is not lost any more, although the server has counted
// it before.
func TestAcceptedGroupsOfReleasedObjects(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.routes[lwsGroup] = elsewhere
	g := main.started(t, store)
	main.lostSets()
	main.definitions = []owners.Definition{{GroupResource: lwsResource, HiddenBy: "v1.leaderworkerset.x-k8s.io"}}
	main.routes[lwsGroup] = routed
	main.round(t, g)
	wantServed(t, g, witness.ReasonCustomResources)
	search(t, g) // begun before
	main.report = owners.Report{}
	main.accept(t, main.record(t).Refusal, false)
	main.round(t, g)
	main.round(t, g)
	wantServed(t, g, "")
	if record := main.record(t); record.Refusal != nil || record.Accepted != nil {
		t.Errorf("the record is %+v", record)
	}
}

// TestSearchOfGroupThatWasGivenAway: a search that was begun before kube-apiserver served the group says nothing about it.
func TestSearchOfGroupThatWasGivenAway(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.routes[lwsGroup] = elsewhere
	g := main.started(t, store)
	main.routes[lwsGroup] = routed
	search(t, g)
	s := g.groups.search
	g.groups.search = &groupSearch{done: make(chan struct{})} // it has not ended
	main.routes[lwsGroup] = elsewhere
	g.groups.looked = time.Time{}
	if err := g.lookOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.void = g.groups.search.void
	g.groups.search = s
	main.lostSets()
	main.routes[lwsGroup] = routed
	g.groups.looked = time.Time{}
	if err := g.lookOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantServed(t, g, witness.ReasonNotChecked)
	main.round(t, g)
	wantServed(t, g, witness.ReasonUnknownOwners)
}
