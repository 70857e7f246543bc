// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// member returns a guard of a server whose embedded member belongs to a cluster.
func (m *main) member(t *testing.T, store *member, cluster string) *Guard {
	t.Helper()
	g := m.guard(t, store)
	g.Cluster = witness.NewCluster(cluster)
	return g
}

func TestClusterOfMembersIsRecorded(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	g := main.member(t, store, "a")
	if err := turns(t, g); err != nil || !g.Serving() {
		t.Fatalf("serving %t: %v", g.Serving(), err)
	}
	for _, cluster := range []string{"", "b"} {
		other := main.member(t, store, cluster)
		if err := turns(t, other); err == nil || other.Serving() {
			t.Errorf("a server with %s serves the store of cluster a: %v", other.Cluster, err)
		}
	}
	same := main.member(t, store, "a")
	if err := turns(t, same); err != nil || !same.Serving() {
		t.Errorf("serving %t: %v", same.Serving(), err)
	}

	main.change(t, func(*witness.Record) *witness.Record { return nil })
	if err := g.raise(t.Context()); err != nil || main.record(t).Cluster.String() != "cluster a" {
		t.Errorf("the record that was deleted is %+v, %v", main.record(t), err)
	}
}

func TestSingleStoreDoesNotBecomeOneOfSeveralMembers(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.started(t, store)
	g := main.member(t, store, "a")
	if err := turns(t, g); err == nil || g.Serving() || main.record(t).Cluster != nil {
		t.Errorf("serving %t: %v", g.Serving(), err)
	}
}

func TestAcceptedStoreBringsItsCluster(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.started(t, store)
	store.exchange("")
	g := main.member(t, store, "a")
	main.accept(t, main.refused(t, g, witness.ReasonEmptyStore), true)
	if err := turns(t, g); err != nil || !g.Serving() || main.record(t).Cluster.String() != "cluster a" {
		t.Errorf("serving %t: %v", g.Serving(), err)
	}
}
