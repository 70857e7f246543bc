// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	same := main.member(t, store, "a")
	if err := turns(t, same); err != nil || !same.Serving() {
		t.Errorf("serving %t: %v", same.Serving(), err)
	}

	main.change(t, func(*witness.Record) *witness.Record { return nil })
	if err := g.raise(t.Context()); err != nil || main.record(t).Cluster.String() != "cluster a" {
		t.Errorf("the record that was deleted is %+v, %v", main.record(t), err)
	}
}

// TestMembersAreReported has the server of the leader write the members into the record, and only when they change.
func TestMembersAreReported(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	leader, follower := main.member(t, store, "a"), main.member(t, store, "a")
	var members []witness.Member
	leader.Members = func() []witness.Member { return members }
	follower.Members = func() []witness.Member { return nil }
	for _, g := range []*Guard{leader, follower} {
		if err := turns(t, g); err != nil || !g.Serving() {
			t.Fatalf("serving %t: %v", g.Serving(), err)
		}
	}
	raise := func(g *Guard) []witness.Member {
		if err := g.raise(t.Context()); err != nil {
			t.Fatal(err)
		}
		return main.record(t).Cluster.Members
	}
	members = []witness.Member{{Name: "js-0", ID: "1"}, {Name: "js-1", ID: "2", Learner: true}}
	for _, g := range []*Guard{leader, follower, leader} {
		if diff := cmp.Diff(members, raise(g)); diff != "" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
	}
	writes := func() (n int) {
		for _, action := range main.kube.Actions() {
			if action.GetVerb() == "update" {
				n++
			}
		}
		return n
	}
	before := writes()
	if raise(leader); writes() != before {
		t.Errorf("members that have not changed cause %d writes", writes()-before)
	}
	members = members[:1]
	if got := raise(leader); len(got) != 1 || !main.record(t).Cluster.Equal(leader.Cluster) {
		t.Errorf("members %v of %s", got, main.record(t).Cluster)
	}
}

// TestSingleStoreGrows has a store with one member become a cluster, which cannot become a single store by a change of a flag.
func TestSingleStoreGrows(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.started(t, store)
	before := main.record(t)
	g := main.member(t, store, "a")
	if err := turns(t, g); err != nil || !g.Serving() {
		t.Fatalf("serving %t: %v", g.Serving(), err)
	}
	if record := main.record(t); record.Cluster.String() != "cluster a" || record.UUID != before.UUID || record.Restored != nil {
		t.Errorf("the record is %+v, was %+v", record, before)
	}
	single := main.guard(t, store)
	refusal := main.refused(t, single, witness.ReasonRolledBack)
	if want := "has one member, but ConfigMap kube-system/jobset-apiserver-store names the cluster a of three"; !strings.Contains(refusal.Message, want) {
		t.Errorf("the message is %q, want %q", refusal.Message, want)
	}
	main.accept(t, refusal, true)
	if err := turns(t, single); err != nil || !single.Serving() || main.record(t).Cluster != nil {
		t.Errorf("serving %t: %v", single.Serving(), err)
	}
}

// TestRestoredClusterHasToBeAccepted: the store is at the revision in the record, but the members of the recorded cluster may have more.
func TestRestoredClusterHasToBeAccepted(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	if err := turns(t, main.member(t, store, "a")); err != nil {
		t.Fatal(err)
	}
	g := main.member(t, store, "b")
	refusal := main.refused(t, g, witness.ReasonRolledBack)
	want := "belongs to the cluster b of embedded members, but ConfigMap kube-system/jobset-apiserver-store names the cluster a"
	if !strings.Contains(refusal.Message, want) {
		t.Errorf("the message is %q, want %q", refusal.Message, want)
	}
	main.accept(t, refusal, true)
	if err := turns(t, g); err != nil || !g.Serving() || main.record(t).Cluster.String() != "cluster b" {
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
