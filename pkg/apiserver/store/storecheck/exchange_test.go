// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/sample"
)

// harm is what clients saw of another store. The garbage collector deletes Jobs for each of these.
type harm struct {
	notFound, otherUID, shortList, deleted, foreignEvent atomic.Int64
	// answers counts what clients asked.
	answers atomic.Int64
}

func (h *harm) total() int64 {
	return h.notFound.Load() + h.otherUID.Load() + h.shortList.Load() + h.deleted.Load() + h.foreignEvent.Load()
}

func (h *harm) String() string {
	return fmt.Sprintf("%d not found, %d other UIDs, %d lists without the object, %d deletions, %d foreign events in %d answers",
		h.notFound.Load(), h.otherUID.Load(), h.shortList.Load(), h.deleted.Load(), h.foreignEvent.Load(), h.answers.Load())
}

const (
	rightUID   = "right"
	foreignUID = "foreign"
)

// ask reads the set in all ways, without a pause, until the context ends.
func (h *harm) ask(ctx context.Context, s storage.Interface) {
	var clients sync.WaitGroup
	defer clients.Wait()
	for _, version := range []string{"", "0"} {
		clients.Go(func() { h.get(ctx, s, version) })
		clients.Go(func() { h.list(ctx, s, version) })
		clients.Go(func() { h.watch(ctx, s, version) })
	}
}

func (h *harm) get(ctx context.Context, s storage.Interface, version string) {
	for ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		var set jobset.JobSet
		err := s.Get(ctx, keyOf("a"), storage.GetOptions{ResourceVersion: version}, &set)
		cancel()
		h.answers.Add(1)
		switch {
		case storage.IsNotFound(err):
			h.notFound.Add(1)
		case err == nil && set.UID != rightUID:
			h.otherUID.Add(1)
		}
	}
}

func (h *harm) list(ctx context.Context, s storage.Interface, version string) {
	for ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		var list jobset.JobSetList
		err := s.GetList(ctx, "/jobsets/", storage.ListOptions{Predicate: storage.Everything, Recursive: true, ResourceVersion: version}, &list)
		cancel()
		h.answers.Add(1)
		if err == nil && (len(list.Items) != 1 || list.Items[0].UID != rightUID) {
			h.shortList.Add(1)
		}
	}
}

func (h *harm) watch(ctx context.Context, s storage.Interface, version string) {
	for ctx.Err() == nil {
		w, err := s.Watch(ctx, "/jobsets/", storage.ListOptions{Predicate: storage.Everything, Recursive: true, ResourceVersion: version})
		if err != nil {
			sleep(ctx, 10*time.Millisecond)
			continue
		}
		for event := range w.ResultChan() {
			h.answers.Add(1)
			set, ok := event.Object.(*jobset.JobSet)
			switch {
			case event.Type == watch.Deleted:
				h.deleted.Add(1)
			case ok && set.UID != rightUID:
				h.foreignEvent.Add(1)
			}
		}
	}
}

// makeForeign keeps the data of another server: the same key, and a history of the set that goes on after what the right store has reached.
func makeForeign(t *testing.T, m *member) {
	t.Helper()
	m.exchange("")
	s := storageOf(t, m, nil, false)
	for i := range 200 {
		set := newSet("a", foreignUID)
		set.Generation = int64(i)
		create(t, s, set)
		if err := s.Delete(t.Context(), keyOf("a"), &jobset.JobSet{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create(t, s, newSet("a", foreignUID))
	m.keep("foreign")
	m.exchange("")
}

// TestNothingOfAnotherStoreGetsOut exchanges the store while clients read without a pause, with and without a watch cache.
func TestNothingOfAnotherStoreGetsOut(t *testing.T) {
	t.Parallel()
	ways := []struct {
		name            string
		cached, guarded bool
	}{{"watch cache true", true, true}, {"watch cache false", false, true}, {"without a guard", true, false}}
	// Each run has each kind of data once, and each way to serve it once.
	for _, shift := range sample.Kinds(t, []int{0, 1, 2}, func(int) string { return "" }) {
		for i, data := range []string{"empty", "foreign", "older"} {
			way := ways[(i+shift)%len(ways)]
			t.Run(data+", "+way.name, func(t *testing.T) {
				t.Parallel()
				h := exchangeUnderClients(t, data, way.cached, way.guarded)
				if way.guarded && h.total() > 0 {
					t.Error(h)
				}
				if !way.guarded && h.total() == 0 {
					t.Error("no client saw the other store, so the test shows nothing:", h)
				}
			})
		}
	}
}

func exchangeUnderClients(t *testing.T, data string, cached, guarded bool) *harm {
	t.Helper()
	m := newMember(t)
	if data == "foreign" {
		makeForeign(t, m)
	}
	var g *Guard
	if guarded {
		g = newMain().started(t, m)
	}
	m.keep("older")
	s := storageOf(t, m, g, cached)
	create(t, s, newSet("a", rightUID))
	poll.Until(t, "the watch cache has the set", func() bool {
		return s.ReadinessCheck() == nil && s.Get(t.Context(), keyOf("a"), storage.GetOptions{ResourceVersion: "0"}, &jobset.JobSet{}) == nil
	})

	h := &harm{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	clients.Go(func() { h.ask(ctx, s) })
	poll.Until(t, "clients ask", func() bool { return h.answers.Load() > 100 })
	if h.total() > 0 {
		t.Fatal("before the exchange:", h)
	}
	if data == "empty" {
		m.exchange("")
	} else {
		m.exchange(data)
	}
	before := h.answers.Load()
	poll.Until(t, "clients have asked after the exchange", func() bool {
		return h.answers.Load() > before+500 && (!guarded || !g.Serving()) && (guarded || h.total() > 0)
	})
	stop()
	clients.Wait()
	return h
}
