// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

// everything is the beginning of a watch with all objects.
func everything(version string) storage.ListOptions {
	predicate := storage.Everything
	predicate.AllowWatchBookmarks, predicate.GetAttrs = true, storage.DefaultNamespaceScopedAttr
	return storage.ListOptions{
		ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, SendInitialEvents: ptr.To(true), Recursive: true, Predicate: predicate,
	}
}

// fill stores so many sets, in two namespaces in turn, and waits until the watch cache has them.
func fill(t *testing.T, store storage.Interface, n int) {
	t.Helper()
	for i := range n {
		set := newVersion("", 1, "driver", 0)
		set.Name, set.Namespace = fmt.Sprint("train-", i), fmt.Sprint("ns-", i%2)
		set.UID, set.Labels = types.UID(fmt.Sprint(i)), map[string]string{"third": strconv.FormatBool(i%3 == 0)}
		if err := store.Create(t.Context(), "/jobsets/"+set.Namespace+"/"+set.Name, set, nil, 0); err != nil {
			t.Fatal(err)
		}
		cached(t, store, "/jobsets/"+set.Namespace+"/"+set.Name, 0)
	}
}

// next returns the next events in words, and their objects.
func next(t *testing.T, w watch.Interface, n int) (got []string) {
	t.Helper()
	for range n {
		event, open := poll.Receive(t, "an event", w.ResultChan())
		if !open {
			return append(got, "closed")
		}
		of := event.Object.(metav1.Object)
		got = append(got, fmt.Sprint(event.Type, " ", of.GetNamespace(), "/", of.GetName(), " ", of.GetResourceVersion(), " ", of.GetAnnotations()))
	}
	return got
}

// watchShared begins a watch that shares work. A watch begins in the watch cache when a list fails because etcd has not answered for three
// seconds, which a machine that stands still may do a few times, but not always.
func watchShared(t *testing.T, store storage.Interface, key string, opts storage.ListOptions) watch.Interface {
	t.Helper()
	const tries = 20
	for range tries {
		w, err := store.Watch(t.Context(), key, opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, shares := w.(*sequel); shares {
			return w
		}
		w.Stop()
	}
	t.Fatalf("each of %d watches begins in the watch cache", tries)
	return nil
}

// TestInitialEventsAreThoseOfTheWatchCache compares watches with those that begin in the watch cache itself, up to a
// change after the beginning.
func TestInitialEventsAreThoseOfTheWatchCache(t *testing.T) {
	const sets = 7
	store := newStore(t, true)
	fill(t, store, sets)
	now, err := store.GetCurrentResourceVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inner := store.(*present).Interface.(*initial).Interface
	selected := everything("")
	selected.Predicate.Label = labels.SelectorFromSet(labels.Set{"third": "true"})
	one := everything("")
	unmarked, anyVersion, oneUnmarked := everything(""), everything("0"), everything("")
	for _, opts := range []*storage.ListOptions{&unmarked, &anyVersion, &oneUnmarked} {
		opts.SendInitialEvents, opts.ResourceVersionMatch, opts.Predicate.AllowWatchBookmarks = nil, "", false
	}
	one.Recursive, oneUnmarked.Recursive = false, false
	silent, silentAny := everything(""), everything("0") // as the API server reads a request of no version
	silent.Predicate.AllowWatchBookmarks, silentAny.Predicate.AllowWatchBookmarks = false, false
	for name, tc := range map[string]struct {
		key  string
		opts storage.ListOptions
		want int
	}{
		"no version":                  {"/jobsets/", unmarked, sets},
		"no version, one namespace":   {"/jobsets/ns-1/", unmarked, 3},
		"without a mark":              {"/jobsets/", silent, sets},
		"any version, without a mark": {"/jobsets/", silentAny, sets},
		"version 0":                   {"/jobsets/", anyVersion, sets},
		"all":                         {"/jobsets/", everything(""), sets},
		"any version":                 {"/jobsets/", everything("0"), sets},
		"this version":                {"/jobsets/", everything(strconv.FormatUint(now, 10)), sets},
		"one namespace":               {"/jobsets/ns-1/", everything(""), 3},
		"an empty namespace":          {"/jobsets/ns-2/", everything(""), 0},
		"a selector":                  {"/jobsets/", selected, 3},
		"one object":                  {"/jobsets/ns-1/train-3", one, 1},
		"one object, no version":      {"/jobsets/ns-1/train-3", oneUnmarked, 1},
		"an object that is not there": {"/jobsets/ns-2/train-3", one, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := watchShared(t, store, tc.key, tc.opts)
			defer got.Stop()
			want, err := inner.Watch(t.Context(), tc.key, tc.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer want.Stop()
			n := tc.want
			if tc.opts.SendInitialEvents != nil && tc.opts.Predicate.AllowWatchBookmarks {
				n++ // the mark
			}
			if diff := cmp.Diff(next(t, want, n), next(t, got, n)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if tc.want == 0 {
				return
			}
			restart := func(input runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
				set := input.DeepCopyObject().(*jobset.JobSet)
				set.Status.Restarts++
				return set, nil, nil
			}
			// It is in ns-1, and selected.
			if err := store.GuaranteedUpdate(t.Context(), "/jobsets/ns-1/train-3", &jobset.JobSet{}, false, nil, restart, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(next(t, want, 1), next(t, got, 1)); diff != "" {
				t.Errorf("event after the beginning (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOtherWatchesBeginInTheWatchCache has watches that the list cannot serve.
func TestOtherWatchesBeginInTheWatchCache(t *testing.T) {
	store := newStore(t, true)
	fill(t, store, 2)
	old := everything("")
	old.SendInitialEvents = nil
	now, err := store.GetCurrentResourceVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old.ResourceVersion, old.ResourceVersionMatch = strconv.FormatUint(now, 10), ""
	future := everything("1000000")
	for name, tc := range map[string]struct {
		key  string
		opts storage.ListOptions
	}{
		"without initial events": {"/jobsets/", old},
		"of the future":          {"/jobsets/", future},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := store.(*present).Interface.Watch(t.Context(), tc.key, tc.opts)
			if err != nil {
				return // the watch cache refuses it
			}
			defer w.Stop()
			if _, shares := w.(*sequel); shares {
				t.Error("the watch begins with a list")
			}
		})
	}
}

// TestStoppedWatchesEnd stops watches whose events no client takes.
func TestStoppedWatchesEnd(t *testing.T) {
	for name, events := range map[string]int{"while it begins": 3 * eventsAhead, "afterwards": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := watch.NewFake()
				w := &sequel{Interface: inner, events: make(chan watch.Event, eventsAhead), stopped: make(chan struct{})}
				go w.run(make([]watch.Event, events))
				synctest.Wait()
				w.Stop()
				w.Stop()
				synctest.Wait() // a goroutine that is left would keep the test from ending
				if !inner.IsStopped() {
					t.Error("the watch of the cache goes on")
				}
			})
		})
	}
}

// TestObjectsAreEncodedOnceForAllWatchers has many watchers encode the same object at the same time.
func TestObjectsAreEncodedOnceForAllWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := newEncodings()
		calls := map[string]int{}
		var mu sync.Mutex
		send := func(version string, format runtime.Identifier, size int) (string, error) {
			set := newVersion("a", 1, "driver", 0)
			set.ResourceVersion = version
			var to bytes.Buffer
			err := (&shared{object: set, encodings: known}).CacheEncode(format, func(obj runtime.Object, w io.Writer) error {
				mu.Lock()
				defer mu.Unlock()
				calls[version+" "+string(format)]++
				if format == "broken" {
					return errors.New("cannot encode it")
				}
				_, err := w.Write(bytes.Repeat([]byte(obj.(metav1.Object).GetResourceVersion()), size))
				return err
			}, &to)
			return to.String(), err
		}
		var sending sync.WaitGroup
		for range 16 {
			for _, version := range []string{"1", "2"} {
				sending.Go(func() {
					if got, err := send(version, "json", 3); got != version+version+version || err != nil {
						t.Errorf("sent %q, error %v", got, err)
					}
				})
			}
		}
		sending.Wait()
		for range 2 {
			if _, err := send("1", "broken", 1); err == nil {
				t.Error("no error of an object that cannot be encoded")
			}
		}
		check := func(when string, want map[string]int) {
			t.Helper()
			if diff := cmp.Diff(want, calls); diff != "" {
				t.Errorf("times that a version was encoded %s (-want +got):\n%s", when, diff)
			}
		}
		check("at first", map[string]int{"1 json": 1, "2 json": 1, "1 broken": 1})
		_, _ = send("1", "protobuf", maxEncoded-100)
		_, _ = send("1", "json", 3)
		check("while the limit is kept", map[string]int{"1 json": 1, "2 json": 1, "1 broken": 1, "1 protobuf": 1})
		_, _ = send("3", "protobuf", 200)
		_, _ = send("1", "json", 3)
		check("after the limit", map[string]int{"1 json": 2, "2 json": 1, "1 broken": 1, "1 protobuf": 1, "3 protobuf": 1})
		time.Sleep(2 * encodedFor)
		synctest.Wait()
		if len(known.known) > 0 || known.bytes > 0 {
			t.Errorf("%d encodings of %d bytes are kept", len(known.known), known.bytes)
		}
	})
}
