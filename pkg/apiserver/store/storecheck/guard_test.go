// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

var orphans = owners.Report{Counts: []owners.Count{{Resource: owners.Resources[1], Owned: 12, Lost: 12, Names: []string{"a/one", "a/two"}}}, Owners: []types.UID{"2c1c7b2e-0f0a-4a5b-9a3e-0d5d8a1b6c7f"}}

// refused lets the guard look and wants it to refuse.
func (m *main) refused(t *testing.T, g *Guard, reason witness.Reason) *witness.Refusal {
	t.Helper()
	if err := turns(t, g); err != nil || g.Serving() || g.Reason() != reason {
		t.Fatalf("serving %t, refused for %q, error %v; want %q", g.Serving(), g.Reason(), err, reason)
	}
	record := m.record(t)
	if record == nil || record.Refusal == nil || record.Refusal.Reason != reason {
		t.Fatalf("the record is %+v", record)
	}
	return record.Refusal
}

func (m *main) accept(t *testing.T, refusal *witness.Refusal, abandon bool) {
	t.Helper()
	m.change(t, func(r *witness.Record) *witness.Record {
		r.Accepted = &witness.Acceptance{NewUUID: refusal.NewUUID, Revision: refusal.Revision, AbandonJobs: abandon}
		return r
	})
}

// served wants the guard to serve after what it has to do.
func served(t *testing.T, g *Guard) {
	t.Helper()
	if err := turns(t, g); err != nil || !g.Serving() {
		t.Fatalf("serving %t, refused for %q, error %v", g.Serving(), g.Reason(), err)
	}
}

func TestFirstStartAndNextStart(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.report = owners.Report{Counts: []owners.Count{{Owned: 1000}}}
	main.started(t, store)
	first := main.record(t)
	if main.checks != 1 || first.UUID == "" || first.Floor == 0 {
		t.Errorf("%d checks of owners; the record is %+v", main.checks, first)
	}
	main.kube.ClearActions()
	main.started(t, store)
	if main.checks != 1 || len(main.kube.Actions()) != 2 {
		t.Errorf("the next start has %d checks of owners, and asks the main cluster for %v", main.checks-1, main.kube.Actions())
	}
	if diff := cmp.Diff(first, main.record(t)); diff != "" {
		t.Errorf("the next start changes the record (-first +next):\n%s", diff)
	}
}

func TestDeletedRecordIsCreatedAgain(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	g := main.started(t, store)
	first := main.record(t)
	main.change(t, func(*witness.Record) *witness.Record { return nil })
	if err := g.raise(t.Context()); err != nil {
		t.Fatal(err)
	}
	if running := main.record(t); running == nil || running.UUID != first.UUID || !g.Serving() {
		t.Errorf("while the server runs: %+v, serving %t", running, g.Serving())
	}
	main.change(t, func(*witness.Record) *witness.Record { return nil })
	main.started(t, store)
	if next := main.record(t); next == nil || next.UUID != first.UUID || main.checks != 2 {
		t.Errorf("at the next start, after %d checks of owners: %+v", main.checks, next)
	}
}

func TestUnknownOwners(t *testing.T) {
	t.Parallel()
	for name, withKey := range map[string]bool{"at the first start": false, "when the record was deleted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, main := newMember(t), newMain()
			if withKey {
				main.started(t, store)
				main.change(t, func(*witness.Record) *witness.Record { return nil })
			}
			main.report = orphans
			g := main.guard(t, store)
			refusal := main.refused(t, g, witness.ReasonUnknownOwners)
			if refusal.JobsAtStake != 12 || !cmp.Equal(refusal.Jobs, orphans.Counts[0].Names) || (refusal.Revision == 0) == withKey {
				t.Errorf("the refusal is %+v", refusal)
			}
			checkLost(t, main, refusal)
			checks := main.checks
			if main.refused(t, g, witness.ReasonUnknownOwners); main.checks != checks {
				t.Error("the owners are checked in each turn")
			}
			main.accept(t, refusal, false)
			if main.refused(t, g, witness.ReasonUnknownOwners); main.record(t).Accepted != nil {
				t.Error("an acceptance that does not abandon the Jobs stays armed")
			}
			main.report = owners.Report{}
			g.refusal.counted = time.Time{} // some time later
			served(t, g)
			if record := main.record(t); record.Refusal != nil || record.Restored != nil || record.UUID == "" {
				t.Errorf("the record is %+v", record)
			}
		})
	}
}

// TestNothingIsToleratedAtFirstStart: a few objects without pods or data whose owners the store does not know may go with a store that was
// served before, and whose record was deleted. Nothing else may.
func TestNothingIsToleratedAtFirstStart(t *testing.T) {
	t.Parallel()
	for name, resource := range map[string]owners.Resource{"StatefulSets": owners.Resources[0], "Jobs": owners.Resources[1], "Services": owners.Resources[3]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, main := newMember(t), newMain()
			few := owners.Report{Counts: []owners.Count{{Resource: resource, Owned: 8, Lost: 1, Names: []string{"a/one"}}}, Owners: orphans.Owners}
			main.report = few
			g := main.guard(t, store)
			refusal := main.refused(t, g, witness.ReasonUnknownOwners)
			want := []witness.Loss{{Resource: resource.String(), Kind: resource.Kind, Count: 1, Names: []string{"a/one"}}}
			if diff := cmp.Diff(want, refusal.AtStake); diff != "" {
				t.Errorf("at stake (-want +got):\n%s", diff)
			}
			checkLost(t, main, refusal)
			main.report = owners.Report{}
			g.refusal.counted = time.Time{} // some time later
			served(t, g)
			main.report = few
			main.change(t, func(*witness.Record) *witness.Record { return nil })
			if resource.Runs {
				main.refused(t, main.guard(t, store), witness.ReasonUnknownOwners)
				return
			}
			main.started(t, store)
		})
	}
}

// TestCustomResources: a definition of one of our kinds keeps a first start from being one until its objects are in the
// store, or a person accepts the store.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	hidden := []owners.Definition{{GroupResource: lwsResource, HiddenBy: "v1.leaderworkerset.x-k8s.io"}}
	for name, end := range map[string]func(t *testing.T, m *main, g *Guard, refusal *witness.Refusal){
		"the objects are imported": func(_ *testing.T, m *main, g *Guard, _ *witness.Refusal) {
			m.definitions = nil
			g.refusal.counted = time.Time{}
		},
		"the store is accepted": func(t *testing.T, m *main, _ *Guard, refusal *witness.Refusal) { m.accept(t, refusal, false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, main := newMember(t), newMain()
			main.definitions = hidden
			g := main.guard(t, store)
			refusal := main.refused(t, g, witness.ReasonCustomResources)
			checks := main.checks
			if main.refused(t, g, witness.ReasonCustomResources); main.checks != checks {
				t.Error("the definitions are looked for in each turn")
			}
			end(t, main, g, refusal)
			served(t, g)
			main.definitions = hidden
			main.started(t, store) // the store is known now
		})
	}
	store, main := newMember(t), newMain()
	main.definitions, main.report = hidden, orphans
	g := main.guard(t, store)
	main.accept(t, main.refused(t, g, witness.ReasonCustomResources), false)
	if main.refused(t, g, witness.ReasonCustomResources); main.record(t).Accepted != nil {
		t.Error("an acceptance that does not abandon what is at stake stays armed")
	}
}

func checkLost(t *testing.T, m *main, refusal *witness.Refusal) {
	t.Helper()
	cm, err := m.kube.CoreV1().ConfigMaps(witness.Namespace).Get(t.Context(), witness.LostOwnersName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := witness.ReadLostOwners(cm)
	if want := (&witness.LostOwners{NewUUID: refusal.NewUUID, Revision: refusal.Revision, Owners: orphans.Owners}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("published %+v (%v), want %+v", got, err, want)
	}
}

func TestAcceptance(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		exchange func(*testing.T, *main, *member)
		reason   witness.Reason
	}{
		"an empty store": {func(_ *testing.T, _ *main, store *member) { store.exchange("") }, witness.ReasonEmptyStore},
		"a foreign store": {func(t *testing.T, m *main, _ *member) {
			m.change(t, func(r *witness.Record) *witness.Record { r.UUID = "other"; return r })
		}, witness.ReasonForeignStore},
		"an older store": {func(t *testing.T, m *main, _ *member) {
			m.change(t, func(r *witness.Record) *witness.Record { r.Floor = 1 << 40; return r })
		}, witness.ReasonRolledBack},
		"a clone": {func(t *testing.T, m *main, _ *member) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: witness.Namespace, UID: "clone"}}
			if _, err := m.kube.CoreV1().Namespaces().Update(t.Context(), namespace, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, witness.ReasonOtherCluster},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, main := newMember(t), newMain()
			main.started(t, store)
			tc.exchange(t, main, store)
			main.report = orphans
			g := main.guard(t, store)
			refusal := main.refused(t, g, tc.reason)
			checkLost(t, main, refusal)

			main.accept(t, &witness.Refusal{NewUUID: refusal.NewUUID, Revision: refusal.Revision + 1}, true)
			main.refused(t, g, tc.reason)
			main.accept(t, &witness.Refusal{NewUUID: "another", Revision: refusal.Revision}, true)
			main.refused(t, g, tc.reason)
			// Another process of this server, or another server of this store, finds and proposes the same.
			other := main.guard(t, store)
			if again := main.refused(t, other, tc.reason); again.NewUUID != refusal.NewUUID {
				t.Errorf("after a restart the store gets %s, not %s", again.NewUUID, refusal.NewUUID)
			}
			main.accept(t, refusal, true)
			served(t, g)
			served(t, other)
			key, err := g.store.read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			record := main.record(t)
			if record.UUID != refusal.NewUUID || key.UUID != refusal.NewUUID || key.ModRevision != record.Floor || record.Restored == nil ||
				record.Restored.Revision != record.Floor || record.Refusal != nil || record.Accepted != nil {
				t.Errorf("the key is %+v, the record %+v", key, record)
			}
			if proposed, err := g.store.proposal(t.Context()); proposed != "" || err != nil {
				t.Errorf("the store still has the proposal %s (%v)", proposed, err)
			}
		})
	}
}

func TestInterruptedAdoptionIsFinished(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.started(t, store)
	store.exchange("")
	g := main.guard(t, store)
	refusal := main.refused(t, g, witness.ReasonEmptyStore)
	main.accept(t, refusal, false)
	// The server ends after it has written the key.
	if _, err := g.store.write(t.Context(), g.newKey(refusal.NewUUID, cluster), 0); err != nil {
		t.Fatal(err)
	}
	main.started(t, store)
	if record := main.record(t); record.UUID != refusal.NewUUID || record.Restored == nil || record.Accepted != nil {
		t.Errorf("the record is %+v", record)
	}
}

func TestNewerFormatCannotBeAccepted(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	first := main.started(t, store)
	key, err := first.store.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key.Format++
	if _, err := first.store.write(t.Context(), &key.Key, key.ModRevision); err != nil {
		t.Fatal(err)
	}
	g := main.guard(t, store)
	refusal := main.refused(t, g, witness.ReasonNewerFormat)
	main.accept(t, refusal, true)
	main.refused(t, g, witness.ReasonNewerFormat)
	if proposed, err := g.store.proposal(t.Context()); proposed != "" || err != nil {
		t.Errorf("something was written into the store: %s (%v)", proposed, err)
	}
}
