// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"
)

// TestNoWatchBeginsInTheFuture: a client that has watched a store with higher resource versions must list again.
func TestNoWatchBeginsInTheFuture(t *testing.T) {
	for name, isCached := range map[string]bool{"with a watch cache": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t, isCached)
			set := newVersion("", 1, "driver", 0)
			set.Namespace, set.UID = "ns", "a"
			if err := store.Create(t.Context(), "/jobsets/ns/train", set, nil, 0); err != nil {
				t.Fatal(err)
			}
			if isCached {
				cached(t, store, "/jobsets/ns/train", 0)
			}
			now, err := store.GetCurrentResourceVersion(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for version, want := range map[string]bool{
				"": true, "0": true, strconv.FormatUint(now, 10): true, strconv.FormatUint(now+1, 10): false, strconv.FormatUint(now+1000, 10): false,
			} {
				options := storage.ListOptions{ResourceVersion: version, Recursive: true, Predicate: storage.Everything}
				w, err := store.Watch(t.Context(), "/jobsets/", options)
				if w != nil {
					w.Stop()
				}
				if (err == nil) != want || err != nil && !errors.IsResourceExpired(err) {
					t.Errorf("a watch from %q, while the store is at %d: %v", version, now, err)
				}
			}
		})
	}
}

// counting is a store that counts the reads of its version.
type counting struct {
	storage.Interface
	reads atomic.Int32
}

func (s *counting) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	s.reads.Add(1)
	return s.Interface.GetCurrentResourceVersion(ctx)
}

// TestWatchesShareReadsOfTheVersion: many clients connect again at the same time.
func TestWatchesShareReadsOfTheVersion(t *testing.T) {
	counted := &counting{Interface: newStore(t, false)}
	store := &present{Interface: counted}
	set := newVersion("", 1, "driver", 0)
	set.Namespace, set.UID = "ns", "a"
	if err := store.Create(t.Context(), "/jobsets/ns/train", set, nil, 0); err != nil {
		t.Fatal(err)
	}
	now, err := counted.Interface.GetCurrentResourceVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		w, err := store.Watch(t.Context(), "/jobsets/", storage.ListOptions{ResourceVersion: strconv.FormatUint(now, 10), Recursive: true, Predicate: storage.Everything})
		if err != nil {
			t.Fatal(err)
		}
		w.Stop()
	}
	if reads := counted.reads.Load(); reads != 1 {
		t.Errorf("%d reads of the version, want 1", reads)
	}
}
