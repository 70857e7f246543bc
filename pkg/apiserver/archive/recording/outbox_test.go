// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/outbox"
)

func names(i int) string { return fmt.Sprintf("set-%04d", i) }

// Two servers, an archive that comes and goes, and 1,000 deletions meanwhile: each run is recorded, once, with its state.
func TestNothingIsLostAndNothingIsThereTwice(t *testing.T) {
	const sets, clients = 1000, 8
	w := newWorld(t)
	w.archive.set(true)
	servers := []*server{w.server().start(), w.server().start()}
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			for i := client; i < sets; i += clients {
				if i == sets/4 || i == sets*3/4 {
					w.archive.set(false)
				}
				if i == sets/2 {
					w.archive.set(true)
				}
				s := servers[i%2]
				s.create(names(i))
				if i%3 == 0 {
					s.update(w.as(alice), names(i), ends(api.RunFailed))
				}
				if i%6 == 0 {
					s.update(w.as(alice), names(i), retried)
				}
				if err := servers[(i/2)%2].remove(w.as(alice), names(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	want := map[string]api.RunState{}
	for i := range sets {
		last := fmt.Sprintf("%s.%d", names(i), 1)
		switch {
		case i%6 == 0:
			want[last], want[names(i)+".2"] = api.RunFailed, api.RunDeleted
		case i%3 == 0:
			want[last] = api.RunFailed
		default:
			want[last] = api.RunDeleted
		}
	}
	w.archive.set(false)
	w.untilArchived(want)
	w.until("the outbox is empty", func() bool { return len(servers[0].entries()) == 0 })
}

func TestAServerThatDiesWhileItRemoves(t *testing.T) {
	for name, state := range map[string]api.RunState{"a set that runs": "", "a set that has ended": api.RunFailed} {
		for _, at := range []point{beforeEntry, entryWritten, objectGone} {
			t.Run(name+", "+string(at), func(t *testing.T) {
				w := newWorld(t)
				s := w.server()
				s.create("a", ends(state))
				s.diesAt(at)
				reached := false
				apart(func() {
					_ = s.remove(w.as(alice), "a")
					reached = true
				})
				if reached {
					t.Fatal("the server did not die")
				}
				// Clients and the garbage collector try again.
				next := w.server()
				if err := next.remove(w.as(alice), "a"); err != nil && !storage.IsNotFound(err) && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				next.drained()
				want := state
				if state == "" {
					want = api.RunDeleted
				}
				w.wantArchived(map[string]api.RunState{"a.1": want})
				wantEqual(t, []string(nil), next.entries())
			})
		}
	}
}

func TestAServerThatDiesWhileItDrains(t *testing.T) {
	for _, at := range []point{entryLoaded, runStored, entryRemoved} {
		t.Run(string(at), func(t *testing.T) {
			w := newWorld(t)
			s := w.server()
			for _, name := range []string{"a", "b"} {
				s.create(name)
				s.mustRemove(name)
			}
			s.diesAt(at)
			reached := false
			apart(func() {
				_ = s.newDrainer().once(t.Context())
				reached = true
			})
			if reached {
				t.Fatal("the server did not die")
			}
			next := w.server()
			next.drained()
			w.wantArchived(map[string]api.RunState{"a.1": api.RunDeleted, "b.1": api.RunDeleted})
			wantEqual(t, []string(nil), next.entries())
		})
	}
}

// An object that is not removed after all has not ended. When it ends later, this end counts.
func TestADeletionThatDoesNotHappen(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	s.create("a")
	s.diesAt(entryWritten)
	apart(func() { _ = s.remove(w.as(alice), "a") })
	next := w.server()
	d := next.newDrainer()
	dropped := value(t, recordedTotal.WithLabelValues(resultDropped))
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{
		{0, []string{"uid-of-a.1"}},
		{maxWait - time.Second, []string{"uid-of-a.1"}},
		{time.Second, nil},
	} {
		w.clock.Step(step.after)
		if err := d.once(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, step.want, next.entries())
	}
	w.wantArchived(map[string]api.RunState{})
	wantEqual(t, 1, value(t, recordedTotal.WithLabelValues(resultDropped))-dropped)
	next.update(w.as(alice), "a", ends(api.RunCompleted))
	next.mustRemove("a")
	next.drained()
	w.wantArchived(map[string]api.RunState{"a.1": api.RunCompleted})
}

// The entry of a deletion that did not happen must not replace the end that the object had.
func TestAnEndThatIsStoredWinsOverAnOldEntry(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	s.create("a")
	s.diesAt(entryWritten)
	apart(func() { _ = s.remove(w.as(alice), "a") })
	next := w.server()
	next.update(w.as(alice), "a", ends(api.RunCompleted))
	if err := next.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	next.mustRemove("a")
	wantEqual(t, []string{"uid-of-a.1"}, next.entries())
	next.drained()
	w.wantArchived(map[string]api.RunState{"a.1": api.RunCompleted})
	wantEqual(t, []string(nil), next.entries())
}

func TestAFullOutboxStopsNoDeletion(t *testing.T) {
	w := newWorld(t)
	s := w.server(func(o *options) { o.outbox = func(c *outbox.Config) { c.MaxEntries = 2 } })
	lost := value(t, lostTotal.WithLabelValues(lostOutboxFull))
	for i := range 4 {
		s.create(names(i))
		s.mustRemove(names(i))
	}
	wantEqual(t, []string{"uid-of-set-0000.1", "uid-of-set-0001.1"}, s.entries())
	wantEqual(t, 2, value(t, lostTotal.WithLabelValues(lostOutboxFull))-lost)
}

func TestAnOutboxThatFailsStopsNoDeletion(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	lost := value(t, lostTotal.WithLabelValues(lostOutboxFailed))
	s.create("a")
	if err := s.Outbox.Close(); err != nil {
		t.Fatal(err)
	}
	s.mustRemove("a")
	wantEqual(t, 1, value(t, lostTotal.WithLabelValues(lostOutboxFailed))-lost)
	wantEqual(t, []string(nil), w.server().entries())
}
