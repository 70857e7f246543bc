// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

func TestRunsAreRecordedWhenTheyEnd(t *testing.T) {
	w := newWorld(t)
	s := w.server(func(o *options) { o.cached = true }).start()
	s.create("done")
	s.create("running")
	s.update(w.as(alice), "done", ends(api.RunCompleted))
	w.untilArchived(map[string]api.RunState{"done.1": api.RunCompleted})
	run, _ := w.archive.run("done", 1)
	if !run.CreationTimestamp.After(start) {
		t.Errorf("recorded at %s", run.CreationTimestamp)
	}
	wantEqual(t, "jobset.x-k8s.io/v1alpha2", run.Object.APIVersion)
	if spec, status := string(run.Details.Spec.Raw), string(run.Details.Status.Raw); !strings.Contains(spec, "successPolicy") ||
		strings.Contains(spec, "replicatedJobs") || !strings.Contains(status, `"terminalState":"Completed"`) {
		t.Errorf("the details are %s and %s, want them redacted", spec, status)
	}
}

// The outbox is for runs that would be lost otherwise.
func TestARunThatIsStoredNeedsNoEntry(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*jobset.JobSet)
		stored  bool
		want    []string
		waiting bool
	}{
		"it has ended and is stored":                {change: ends(api.RunFailed), stored: true},
		"it has ended and is not stored":            {change: ends(api.RunFailed), want: []string{"uid-of-a.1"}},
		"it runs":                                   {change: func(*jobset.JobSet) {}, want: []string{"uid-of-a.1"}},
		"it runs again after an end that is stored": {change: ends(api.RunFailed), stored: true, want: []string{"uid-of-a.2"}, waiting: true},
		"it never began": {
			change: func(set *jobset.JobSet) { set.Labels = map[string]string{"describe": "never began"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.server()
			s.create("a")
			s.update(w.as(alice), "a", tc.change)
			if tc.stored {
				if err := s.sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if tc.waiting {
				s.update(w.as(alice), "a", retried)
			}
			s.mustRemove("a")
			wantEqual(t, tc.want, s.entries())
		})
	}
}

func TestWhoDeletedARun(t *testing.T) {
	deletes := func(set *jobset.JobSet) { set.DeletionTimestamp = &metav1.Time{Time: start} }
	for name, tc := range map[string]struct {
		before func(w *world, s *server)
		want   string
	}{
		"the user who removes it": {before: func(*world, *server) {}, want: collector},
		"the user who deleted it, although finalizers kept it": {
			before: func(w *world, s *server) {
				s.update(w.as(alice), "a", deletes)
				s.update(w.as("bob"), "a", deletes)
			},
			want: alice,
		},
		"not known, if it was deleted through another server": {
			before: func(w *world, _ *server) { w.server().update(w.as(alice), "a", deletes) },
		},
		"at most 256 bytes of the name": {
			before: func(w *world, s *server) { s.update(w.as(strings.Repeat("ä", 200)), "a", deletes) }, want: strings.Repeat("ä", 128),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.server()
			s.create("a")
			tc.before(w, s)
			if err := s.remove(w.as(collector), "a"); err != nil {
				t.Fatal(err)
			}
			s.drained()
			run, ok := w.archive.run("a", 1)
			if !ok || run.State != api.RunDeleted || !run.EndTime.Time.Equal(w.clock.Now()) {
				t.Errorf("recorded %t: %s at %s", ok, run.State, run.EndTime)
			}
			wantEqual(t, tc.want, run.EndUser)
		})
	}
}

// A run that ended is over, however its object continues.
func TestARetryLeavesTheExecutionThatEnded(t *testing.T) {
	w := newWorld(t)
	w.archive.set(true)
	s := w.server().start()
	s.create("a")
	s.update(w.as(alice), "a", ends(api.RunFailed))
	s.update(w.as(alice), "a", retried)
	wantEqual(t, []string{"uid-of-a.1"}, s.entries())
	s.update(w.as(alice), "a", ends(api.RunCompleted))
	w.archive.set(false)
	w.untilArchived(map[string]api.RunState{"a.1": api.RunFailed, "a.2": api.RunCompleted})
	w.until("the outbox is empty", func() bool { return len(s.entries()) == 0 })
	run, _ := w.archive.run("a", 1)
	if status := string(run.Details.Status.Raw); !strings.Contains(status, "Failed") {
		t.Errorf("the details are from after the retry: %s", status)
	}
}

func TestAConflictReplacesTheEntry(t *testing.T) {
	for name, tc := range map[string]struct {
		stored bool
		want   api.RunState
	}{
		"the run ended in between":               {want: api.RunCompleted},
		"the run ended and was recorded already": {stored: true, want: api.RunCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.server()
			s.create("a")
			stale := &jobset.JobSet{}
			if err := s.store.Get(t.Context(), keyOf("a"), storage.GetOptions{}, stale); err != nil {
				t.Fatal(err)
			}
			s.update(w.as(alice), "a", ends(api.RunCompleted))
			if tc.stored {
				if err := s.sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			err := s.store.Delete(w.as(alice), keyOf("a"), &jobset.JobSet{}, nil, storage.ValidateAllObjectFunc, stale, storage.DeleteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, []string{"uid-of-a.1"}, s.entries())
			s.drained()
			w.wantArchived(map[string]api.RunState{"a.1": tc.want})
		})
	}
}

// Two versions of one object come to the validation of one deletion, and the run of the second is stored by then.
func TestAnEntryOfAnEarlierVersionIsReplaced(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	s.create("a")
	running, done := s.update(w.as(alice), "a", ends("")), s.update(w.as(alice), "a", ends(api.RunCompleted))
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	written := s.removing(w.as(alice), jobSets, keyOf("a"), running, false)
	wantEqual(t, true, written)
	wantEqual(t, true, s.removing(w.as(alice), jobSets, keyOf("a"), done, written))
	refs, err := s.Outbox.Index(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.Outbox.Load(t.Context(), refs)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := s.Outbox.Decode(t.Context(), stored[0])
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, api.RunCompleted, entry.Run.State)
	wantEqual(t, false, entry.Removal)
}

func TestADescribeThatPanicsStopsNothing(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	before := value(t, lostTotal.WithLabelValues(lostDescribe))
	s.create("a", func(set *jobset.JobSet) { set.Labels = map[string]string{"describe": "panics"} })
	s.create("b", ends(api.RunCompleted))
	s.update(w.as(alice), "a", ends(api.RunFailed))
	if err := s.sweep(t.Context()); err != nil {
		t.Error(err)
	}
	s.mustRemove("a")
	if got := value(t, lostTotal.WithLabelValues(lostDescribe)) - before; got < 3 {
		t.Errorf("%v panics were counted, want the one of each step", got)
	}
	wantEqual(t, []string(nil), s.entries())
	w.wantArchived(map[string]api.RunState{"b.1": api.RunCompleted})
}

func TestDetailsAreNeverKeptUnredacted(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	s.Redact = func(*api.Run, map[string]any, map[string]any) { panic("cannot redact this") }
	s.create("a", ends(api.RunCompleted))
	s.mustRemove("a")
	s.drained()
	run, ok := w.archive.run("a", 1)
	if !ok || run.Details != nil {
		t.Errorf("recorded %t with the details %+v, want none", ok, run.Details)
	}
}

// A placeholder stands for an object that cannot be read, so that its fields mean nothing.
func TestPlaceholdersHaveNoRuns(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	s.create("a", ends(api.RunCompleted), func(set *jobset.JobSet) { set.Annotations = map[string]string{unreadable.Annotation: "damaged"} })
	s.create("b", ends(api.RunCompleted))
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantArchived(map[string]api.RunState{"b.1": api.RunCompleted})
}

func TestOtherResourcesPassThrough(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	var next storage.Interface = &struct{ storage.Interface }{}
	config := storagebackend.NewDefaultConfig(prefix, runtime.Codec(nil)).ForResource(schema.GroupResource{Resource: "others"})
	got, err := s.Wrap(next, config)
	if err != nil || got != next {
		t.Errorf("the store became %T, %v", got, err)
	}
}

func TestTheSweepFindsWhatEndedBefore(t *testing.T) {
	for name, cached := range map[string]bool{"in the watch cache": true, "in etcd": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := w.server()
			want := map[string]api.RunState{}
			for i := range sweepPage + 1 {
				name := names(i)
				before.create(name, ends(api.RunCompleted))
				want[name+".1"] = api.RunCompleted
			}
			before.create("running")
			w.server(func(o *options) { o.cached = cached }).start()
			w.untilArchived(want)
		})
	}
}

// A server that ends records what has ended, if the archive takes it.
func TestWhatIsQueuedIsRecordedAtTheEnd(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	s.create("a")
	s.create("b")
	w.archive.set(true)
	s.start()
	s.update(w.as(alice), "a", ends(api.RunCompleted))
	s.update(w.as(alice), "b", ends(api.RunFailed))
	w.until("the worker has the first run", func() bool { return len(s.queue) < 2 })
	w.archive.set(false)
	s.end()
	w.wantArchived(map[string]api.RunState{"a.1": api.RunCompleted, "b.1": api.RunFailed})
}

func TestTheQueueNeverBlocks(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	s.queue = make(chan ended, 1)
	s.create("a")
	s.create("b")
	s.update(w.as(alice), "a", ends(api.RunCompleted))
	s.update(w.as(alice), "b", ends(api.RunCompleted))
	wantEqual(t, 1, len(s.queue))
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantArchived(map[string]api.RunState{"a.1": api.RunCompleted, "b.1": api.RunCompleted})
}
