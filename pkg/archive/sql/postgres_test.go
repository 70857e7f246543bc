// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

func TestPostgres(t *testing.T) {
	s := newServer(t)
	var databases atomic.Int32
	create := func(t *testing.T) Config { return s.create(t, fmt.Sprintf("archive%d", databases.Add(1))) }
	suite(t, create)
	for name, test := range map[string]func(t *testing.T, s *server, config Config){
		"each filter can be read from an index without sorting": testPostgresPlans,
		"what a lost server has left behind is ended":           testLostServer,
		"a commit waits for the disk":                           testDurable,
		"the encoding must be UTF8":                             testEncoding,
	} {
		t.Run(name, func(t *testing.T) { test(t, s, create(t)) })
	}
	// These change the server.
	t.Run("a database that was away is used again", func(t *testing.T) { testComesBack(t, s, create(t)) })
	t.Run("the password is read for each connection", func(t *testing.T) { testPassword(t, s, create(t)) })
}

func testComesBack(t *testing.T, server *server, config Config) {
	s := open(t, config)
	put(t, s, newRun(1))
	server.stop(t)
	late, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close() //nolint:errcheck // checked elsewhere
	for range 3 {
		for name, store := range map[string]*Store{"a store that was used": s, "a new store": late} {
			if err := store.Put(t.Context(), runsFrom(2, 2)); err == nil {
				t.Errorf("%s: want an error from Put while the server is away", name)
			}
			if _, err := store.List(t.Context(), api.Query{}); err == nil {
				t.Errorf("%s: want an error from List while the server is away", name)
			}
			if _, err := store.Get(t.Context(), "team", newRun(1).Name); err == nil || errors.Is(err, api.ErrNotFound) {
				t.Errorf("%s: want an error from Get that is not ErrNotFound while the server is away, got %v", name, err)
			}
			if _, err := store.Missing(t.Context(), []api.Ended{{}}); err == nil {
				t.Errorf("%s: want an error from Missing while the server is away", name)
			}
		}
	}
	server.start(t)
	put(t, s, newRun(2))
	put(t, late, newRun(3))
	if diff := cmp.Diff([]string{"train-3", "train-2", "train-1"}, listed(t, s, api.Query{})); diff != "" {
		t.Errorf("other runs are stored (-want +got):\n%s", diff)
	}
}

func testPassword(t *testing.T, server *server, config Config) {
	s := open(t, config)
	put(t, s, newRun(1))
	if err := server.administer(t.Context(), `ALTER USER archive PASSWORD 'second'`); err != nil {
		t.Fatal(err)
	}
	s.db.SetMaxIdleConns(0) // so that each operation connects
	if err := s.Put(t.Context(), runsFrom(2, 2)); err == nil {
		t.Error("want an error with the old password")
	} else if strings.Contains(err.Error(), "first") {
		t.Errorf("the error has the password: %v", err)
	}
	server.setPassword(t, "second\nnot this line")
	put(t, s, newRun(2))
	for name, c := range map[string]struct{ content, want string }{
		"nothing":       {"", fmt.Sprintf("the first line of %s must be a password of 1 to 4096 bytes", server.passwordFile)},
		"an empty line": {"\nsecond", fmt.Sprintf("the first line of %s must be a password of 1 to 4096 bytes", server.passwordFile)},
		"too much":      {strings.Repeat("x", 1<<20), fmt.Sprintf("the first line of %s must be a password of 1 to 4096 bytes", server.passwordFile)},
	} {
		server.setPassword(t, c.content)
		if err := s.Put(t.Context(), runsFrom(3, 3)); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: want %s\n got %v", name, c.want, err)
		}
	}
	server.setPassword(t, "second")
	put(t, s, newRun(3))
}

// A server that keeps a lock and does not answer any more does not stop the others for ever: PostgreSQL ends its transaction.
func testLostServer(t *testing.T, _ *server, config Config) {
	s := open(t, config)
	config.Timeout = 2 * time.Second
	lost, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer lost.Close() //nolint:errcheck // checked elsewhere
	tx, err := lost.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // it is gone
	if _, err := tx.ExecContext(t.Context(), lost.dialect.lock); err != nil {
		t.Fatal(err)
	}
	put(t, s, newRun(1))
}

func testDurable(t *testing.T, server *server, config Config) {
	parsed, err := url.Parse(config.URL)
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{"off": "on", "remote_apply": "remote_apply", "local": "local"} {
		if err := server.administer(t.Context(), `ALTER DATABASE `+strings.Trim(parsed.Path, "/")+` SET synchronous_commit = `+setting); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := open(t, config).db.QueryRowContext(t.Context(), `SHOW synchronous_commit`).Scan(&got); err != nil || got != want {
			t.Errorf("%s: want %s, got %s, %v", setting, want, got, err)
		}
	}
}

func testEncoding(t *testing.T, server *server, config Config) {
	if err := server.administer(t.Context(), `CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`); err != nil {
		t.Fatal(err)
	}
	config.URL = server.url("latin")
	_, err := Open(t.Context(), config)
	want := "preparing the archive database: the database must have the encoding UTF8, and has LATIN1: " +
		"create one WITH ENCODING 'UTF8' TEMPLATE template0"
	if err == nil || err.Error() != want {
		t.Errorf("want %s\n got %v", want, err)
	}
}

// PostgreSQL chooses how to read by statistics. What counts is that it can read each filter from an index without sorting.
func testPostgresPlans(t *testing.T, _ *server, config Config) {
	s := open(t, config)
	put(t, s, randomRuns...)
	execute(t, s, `ANALYZE`)
	for _, f := range filters() {
		for _, namespace := range []string{"", "team"} {
			query := api.Query{Namespace: namespace}
			f.add(t, &query)
			p, err := planOf(query)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range p.scans(first) {
				statement, args := part.statement(p, 51)
				var steps []string
				err := s.read(t.Context(), func(ctx context.Context, t session) error {
					err := t.exec(ctx, `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off; `+
						`SET LOCAL enable_incremental_sort = off`)
					if err != nil {
						return err
					}
					return t.each(ctx, func(scan func(...any) error) error {
						steps = append(steps, "")
						return scan(&steps[len(steps)-1])
					}, `EXPLAIN `+statement, args...)
				})
				if err != nil {
					t.Fatal(err)
				}
				plan := strings.Join(steps, "\n")
				if strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "Sort") || !strings.Contains(plan, "using archive_terms_pkey on archive_terms t") {
					t.Errorf("%s in namespace %q: want ranges of indexes and no sorting, got\n%s", f.name, namespace, plan)
				}
			}
		}
	}
	var counted int64
	if err := (session{s.db, s.dialect}).row(t.Context(), s.dialect.used).Scan(&counted); err != nil {
		t.Fatal(err)
	}
	if size := usage(t, s).Bytes; counted > 3*size || counted < size/3 {
		t.Errorf("want about the %d bytes that the tables take, counted %d", size, counted)
	}
}
