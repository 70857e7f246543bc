// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

func testMigrateTogether(t *testing.T, config Config) {
	const servers = 8
	var group sync.WaitGroup
	stores, failures := make([]api.Store, servers), make([]error, servers)
	for i := range servers {
		group.Go(func() {
			if stores[i], failures[i] = Open(t.Context(), config); failures[i] == nil {
				failures[i] = stores[i].Put(t.Context(), runsFrom(i, i+1))
			}
		})
	}
	group.Wait()
	for i, err := range failures {
		if err != nil {
			t.Errorf("server %d: %v", i, err)
		}
		if stores[i] != nil {
			defer stores[i].Close() //nolint:errcheck // checked elsewhere
		}
	}
	if got := usage(t, open(t, config)).Runs; got != servers+1 {
		t.Errorf("want %d runs, got %d", servers+1, got)
	}
}

func testNewerSchema(t *testing.T, config Config) {
	s := open(t, config)
	put(t, s, newRun(1))
	execute(t, s, `UPDATE archive_meta SET value = 99 WHERE name = 'schema'`)
	_, err := Open(t.Context(), config)
	want := "preparing the archive database: the archive database is newer than this server: its schema must be at most 1, and is 99; " +
		"update this server, or use another database"
	if !errors.Is(err, ErrNewerSchema) || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
	late, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close() //nolint:errcheck // checked elsewhere
	if err := late.Put(t.Context(), runsFrom(2, 2)); !errors.Is(err, ErrNewerSchema) {
		t.Errorf("want ErrNewerSchema from a store that was not prepared, got %v", err)
	}
	if n := count(t, s, "archive_runs"); n != 1 {
		t.Errorf("want 1 run, got %d", n)
	}
}

func testTwoServers(t *testing.T, config Config) {
	a, b := open(t, config), open(t, config)
	deleted := newRun(1000)
	put(t, a, deleted)
	var group sync.WaitGroup
	for i, s := range []*Store{a, b} {
		for from := range 5 {
			group.Go(func() {
				if err := s.Put(t.Context(), append(runsFrom(10*from, 10*from+14), deleted)); err != nil {
					t.Error(err)
				}
				if _, err := s.List(t.Context(), api.Query{}); err != nil {
					t.Error(err)
				}
				if i == 1 && from == 2 {
					remove(t, s, deleted)
				}
			})
		}
	}
	group.Wait()
	put(t, a, deleted)
	if diff := cmp.Diff(usage(t, a), usage(t, b)); diff != "" {
		t.Errorf("the servers count otherwise (-first +second):\n%s", diff)
	}
	if got := usage(t, a); got.Runs != 55 || !got.Oldest.Equal(at(0).Time) || got.Bytes <= 0 {
		t.Errorf("want 55 runs from %v with a size, got %+v", at(0), got)
	}
	if has(t, b, deleted) {
		t.Error("a deleted run is back")
	}
}

func testLocked(t *testing.T, config Config) {
	holder, s := open(t, config), open(t, config)
	config.Timeout = time.Millisecond
	hasty, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close() //nolint:errcheck // checked elsewhere
	locked, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		err := holder.write(t.Context(), func(context.Context, session) error {
			close(locked)
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-locked
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Put(ctx, runsFrom(1, 1)); err == nil {
		t.Error("want an error when the context ends while another server writes")
	}
	if err := hasty.Put(t.Context(), runsFrom(1, 1)); err == nil {
		t.Error("want an error when the timeout is over while another server writes")
	}
	if diff := cmp.Diff([]string{}, listed(t, s, api.Query{})); diff != "" {
		t.Errorf("readers see other runs while another server writes (-want +got):\n%s", diff)
	}
	close(release)
	group.Wait()
	put(t, s, newRun(1))
}
