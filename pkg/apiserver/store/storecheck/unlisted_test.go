// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

var hiddenSets = []owners.Definition{{GroupResource: lwsResource, HiddenBy: "v1.leaderworkerset.x-k8s.io"}}

// TestDeletedRecordOpensNoGroup: a group that is refused stays so, and takes no other group down, when the record is deleted and the server
// starts again.
func TestDeletedRecordOpensNoGroup(t *testing.T) {
	t.Parallel()
	for want, older := range map[witness.Reason]bool{witness.ReasonCustomResources: false, witness.ReasonUnknownOwners: true} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			store, main := newMember(t), newMain()
			main.routes[lwsGroup] = elsewhere
			g := main.started(t, store)
			main.routes[lwsGroup] = routed
			if main.definitions = hiddenSets; want == witness.ReasonUnknownOwners {
				main.lostSets()
				main.definitions = nil
			}
			main.round(t, g)
			wantServed(t, g, want)
			if older {
				main.unlisted(t, g)
			}
			main.change(t, func(*witness.Record) *witness.Record { return nil })
			g = main.started(t, store)
			wantServed(t, g, witness.ReasonNotChecked)
			main.round(t, g)
			wantServed(t, g, want)
		})
	}
}

// TestDeletedRecordWhileGroupIsElsewhere: the children of a group that was given away belong to another controller.
func TestDeletedRecordWhileGroupIsElsewhere(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.routes[lwsGroup] = routed
	main.started(t, store)
	main.routes[lwsGroup] = elsewhere
	main.lostSets()
	main.change(t, func(*witness.Record) *witness.Record { return nil })
	wantServed(t, main.started(t, store), witness.ReasonNotRouted)
}

// unlisted writes the key as an older version does, which has created JobSets.
func (m *main) unlisted(t *testing.T, g *Guard) {
	t.Helper()
	key, err := g.store.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key.Groups = nil
	if _, err := g.store.write(t.Context(), &key.Key, key.ModRevision); err != nil {
		t.Fatal(err)
	}
	m.created = sets.New(jobset.GroupName)
}

// TestGroupsAfterOlderVersion: an older version leaves the list in the record as it is, and does not notice when a group is given away.
func TestGroupsAfterOlderVersion(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.routes[lwsGroup] = routed
	main.unlisted(t, main.started(t, store))
	main.lostSets()
	g := main.started(t, store)
	wantServed(t, g, witness.ReasonNotChecked)
	main.round(t, g)
	wantServed(t, g, witness.ReasonUnknownOwners)
}

// TestAcceptedStoreOpensNoHiddenGroup: who accepts a store that was rolled back does not accept what a definition hides.
func TestAcceptedStoreOpensNoHiddenGroup(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.routes[lwsGroup] = elsewhere
	main.started(t, store)
	main.change(t, func(r *witness.Record) *witness.Record { r.Floor = 1 << 40; return r })
	main.routes[lwsGroup], main.definitions = routed, hiddenSets
	g := main.guard(t, store)
	if err := turns(t, g); err != nil || g.Reason() != witness.ReasonRolledBack {
		t.Fatalf("%s: %v", g.Reason(), err)
	}
	main.accept(t, main.record(t).Refusal, false)
	if err := turns(t, g); err != nil || !g.Serving() {
		t.Fatalf("serving %t: %v", g.Serving(), err)
	}
	wantServed(t, g, witness.ReasonNotChecked)
	main.round(t, g)
	wantServed(t, g, witness.ReasonCustomResources)
}

// TestGroupThatAnotherServerSawGivenAway: a server that did not read the routes while kube-apiserver served a group learns of it from the key.
func TestGroupThatAnotherServerSawGivenAway(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.routes[lwsGroup] = routed
	away, other := main.started(t, store), main.started(t, store)
	main.routes[lwsGroup] = elsewhere
	main.round(t, other)
	main.lostSets()
	main.err = http.ErrHandlerTimeout // the main API does not answer the first server
	if err := away.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := away.lookOnce(t.Context()); err == nil {
		t.Error("no error")
	}
	wantServed(t, away, witness.ReasonNotChecked)
	main.err, main.routes[lwsGroup] = nil, routed
	main.round(t, away)
	wantServed(t, away, witness.ReasonUnknownOwners)
	main.report = owners.Report{}
	later(away)
	main.round(t, away)
	wantServed(t, away, "")
	if err := away.Verify(t.Context()); err != nil { // the key has the group again
		t.Fatal(err)
	}
	main.round(t, away)
	wantServed(t, away, "")
	main.round(t, other)
	wantServed(t, other, "")
}

// TestGroupThatChangedUnseen: an APIService that changed while the routes could not be read may have given its group away and taken it back.
// Its status changes, too, so that the group is served on unless a definition could have got objects, and something is lost.
func TestGroupThatChangedUnseen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		version     string
		definitions []owners.Definition
		kept        bool
		want        witness.Reason
	}{
		"beside a definition":                      {version: "2", definitions: hiddenSets, want: witness.ReasonUnknownOwners},
		"beside a definition, and nothing is lost": {version: "2", definitions: hiddenSets, kept: true},
		"without a definition":                     {version: "2"},
		"which did not change":                     {version: "1", definitions: hiddenSets},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, main := newMember(t), newMain()
			main.routes[lwsGroup] = Route{UID: "service", Version: "1"}
			g := main.started(t, store)
			if main.definitions = tc.definitions; !tc.kept {
				main.lostSets()
			}
			main.routes[lwsGroup] = Route{UID: "service", Version: tc.version}
			main.round(t, g) // some time later
			wantServed(t, g, tc.want)
			main.round(t, g)
			wantServed(t, g, tc.want)
			if tc.want == "" {
				return
			}
			wantServed(t, main.started(t, store), witness.ReasonNotChecked)
			main.report = owners.Report{}
			main.definitions = nil
			later(g)
			main.round(t, g)
			wantServed(t, g, "")
		})
	}
}
