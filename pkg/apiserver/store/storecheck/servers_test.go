// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// TestServedStoreIsRemembered puts a copy of the store in its place that has the same key but not all objects.
func TestServedStoreIsRemembered(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	g := main.started(t, store)
	store.keep("older")
	create(t, storageOf(t, store, g, false), newSet("a", "1"))
	store.keep("right")
	store.exchange("older")
	if err := g.Verify(t.Context()); !apierrors.IsServiceUnavailable(err) {
		t.Fatalf("the older store is served: %v", err)
	}
	refusal := main.refused(t, g, witness.ReasonRolledBack)
	if !refusal.Served {
		t.Error("the refusal does not say that the server has answered")
	}
	main.refused(t, main.guard(t, store), witness.ReasonRolledBack) // a new process

	store.exchange("right")
	if err := turns(t, g); !errors.Is(err, ErrFresh) {
		t.Errorf("the server that has answered goes on with %v", err)
	}
	next := main.started(t, store)
	if err := next.raise(t.Context()); err != nil {
		t.Fatal(err)
	}
	if record := main.record(t); record.Refusal != nil {
		t.Errorf("the record is %+v", record)
	}
}

func TestFloor(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	one, two := main.started(t, store), main.started(t, store)
	s := storageOf(t, store, one, false)
	floor := main.record(t).Floor
	raise := func(g *Guard) int64 {
		t.Helper()
		if err := g.raise(t.Context()); err != nil {
			t.Fatal(err)
		}
		return main.record(t).Floor
	}
	main.kube.ClearActions()
	if raise(one) != floor || raise(two) != floor || len(main.kube.Actions()) != 4 { // a get, and the list of the test
		t.Errorf("the floor is written although nothing has changed: %v", main.kube.Actions())
	}
	create(t, s, newSet("a", "1"))
	raised := raise(one)
	if raised <= floor || raise(two) != raised || raise(one) != raised {
		t.Errorf("the floor was %d, then %d, then %d", floor, raised, main.record(t).Floor)
	}
	create(t, s, newSet("b", "2"))
	two.Close(t.Context())
	if closed := main.record(t).Floor; closed <= raised {
		t.Errorf("the floor is %d after the server has ended, was %d", closed, raised)
	}
}

// TestFloorIsNeverLowered raises the floor while another server does.
func TestFloorIsNeverLowered(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	g := main.started(t, store)
	create(t, storageOf(t, store, g, false), newSet("a", "1"))
	conflicts := 0
	main.kube.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts++
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, witness.Name, errors.New("changed"))
	})
	floor := main.record(t).Floor
	if err := g.raise(t.Context()); err != nil || conflicts != 1 || main.record(t).Floor != floor {
		t.Errorf("%d conflicts, error %v, floor %d", conflicts, err, main.record(t).Floor)
	}
}

// TestForkedStoresDoNotBothServe has two servers on copies of one store, whose keys are both good.
func TestForkedStoresDoNotBothServe(t *testing.T) {
	t.Parallel()
	main := newMain()
	one := newMember(t)
	first := main.started(t, one)
	one.keep("copy")
	two := newMember(t)
	two.exchangeWith(one.dir("copy"))
	second := main.started(t, two)
	for _, name := range []string{"a", "b"} { // the first goes further
		create(t, storageOf(t, one, first, false), newSet(name, "1"))
	}
	if err := first.raise(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.raise(t.Context()); err == nil || second.Serving() || second.Reason() != witness.ReasonRolledBack {
		t.Errorf("the server of the copy serves: %t, %q, %v", second.Serving(), second.Reason(), err)
	}
}

func TestSecondStoreIsNeverServed(t *testing.T) {
	t.Parallel()
	main := newMain()
	g := main.started(t, newMember(t))
	second := main.guard(t, newMember(t))
	second.server = "other"
	refusal := main.refused(t, second, witness.ReasonEmptyStore)
	// The server that serves leaves the refusal alone while the other one confirms it.
	if err := g.raise(t.Context()); err != nil || main.record(t).Refusal == nil {
		t.Errorf("the record is %+v (%v)", main.record(t), err)
	}
	third := main.guard(t, newMember(t))
	third.server = "third"
	if err := turns(t, third); err != nil || third.Serving() || main.record(t).Refusal.NewUUID != refusal.NewUUID {
		t.Errorf("the third server: %v, serving %t, record %+v", err, third.Serving(), main.record(t))
	}
	// Whatever the clocks say: a server ends what it has itself seen without a confirmation for long enough.
	own := testclock.NewFakePassiveClock(time.Now())
	g.clock = own
	for _, skew := range []time.Duration{-24 * time.Hour, -2 * abandonedAfter, 0, 2 * abandonedAfter, 24 * time.Hour} {
		main.change(t, func(r *witness.Record) *witness.Record {
			r.Refusal.Time = metav1.NewTime(own.Now().Add(skew))
			return r
		})
		for range 2 {
			if err := g.raise(t.Context()); err != nil || main.record(t).Refusal == nil {
				t.Fatalf("the record is %+v (%v) after a confirmation %s from now", main.record(t), err, skew)
			}
			own.SetTime(own.Now().Add(abandonedAfter))
		}
	}
	if err := g.raise(t.Context()); err != nil || main.record(t).Refusal != nil {
		t.Errorf("a refusal that nobody confirms stays: %v", err)
	}
}

// TestAbandonedRefusalIsReplaced: a server that refuses its store waits for one that stopped confirming, by its own clock.
func TestAbandonedRefusalIsReplaced(t *testing.T) {
	t.Parallel()
	main := newMain()
	main.started(t, newMember(t))
	first := main.guard(t, newMember(t))
	first.server = "first"
	old := main.refused(t, first, witness.ReasonEmptyStore)
	second := main.guard(t, newMember(t))
	own := testclock.NewFakePassiveClock(time.Now().Add(-time.Hour))
	second.server, second.clock = "second", own
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "first"}, {abandonedAfter, "first"}, {time.Second, "second"}} {
		own.SetTime(own.Now().Add(step.after))
		if err := turns(t, second); err != nil || main.record(t).Refusal.Server != step.want {
			t.Fatalf("after %s more the refusal is that of %q (%v), want %q", step.after, main.record(t).Refusal.Server, err, step.want)
		}
	}
	if main.record(t).Refusal.NewUUID == old.NewUUID {
		t.Error("both stores have the same UUID")
	}
	confirmed := main.record(t).Refusal.Time
	for _, after := range []time.Duration{time.Second, confirmInterval} {
		own.SetTime(own.Now().Add(after))
		if err := turns(t, second); err != nil {
			t.Fatal(err)
		}
	}
	if again := main.record(t).Refusal.Time; again.Equal(&confirmed) {
		t.Error("the refusal is not confirmed again")
	}
}

func TestServersThatStartTogetherAgree(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	const servers = 5
	results := make(chan error, servers)
	var guards []*Guard
	for range servers {
		g := main.guard(t, store)
		g.Owners = func(context.Context, sets.Set[string]) (owners.Report, error) { return owners.Report{}, nil }
		guards = append(guards, g)
	}
	for _, g := range guards {
		go func() {
			err := errAgain
			for range maxRetries {
				if err = g.turn(t.Context()); err != errAgain {
					break
				}
			}
			results <- err
		}()
	}
	for range servers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	for _, g := range guards {
		if !g.Serving() || g.known.uuid != main.record(t).UUID {
			t.Errorf("serving %t the store %s; the record has %s", g.Serving(), g.known.uuid, main.record(t).UUID)
		}
	}
}
