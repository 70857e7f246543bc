// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

func TestSQLite(t *testing.T) { suite(t, newFile) }

// newFile returns the configuration of an empty SQLite database.
func newFile(t *testing.T) Config {
	return Config{URL: filepath.Join(t.TempDir(), "archive.db"), Timeout: longTimeout}
}

func TestConfig(t *testing.T) {
	password := "pa55word"
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"nothing":               {Config{}, "the archive database must be the absolute path of a file, or a URL that begins with postgres://"},
		"a scheme":              {Config{URL: "mysql://u:" + password + "@h/d"}, "the archive database must be the absolute path of a file, or a URL that begins with postgres://"},
		"a relative file":       {Config{URL: "sqlite:archive.db"}, "the file of the archive database must have an absolute path"},
		"NUL":                   {Config{URL: "/tmp/a\x00b"}, "the path of the archive database must not contain NUL"},
		"a password for a file": {Config{URL: "/tmp/a", PasswordFile: "/p"}, "a password file for the archive database is allowed for PostgreSQL only"},
		"a bad port": {Config{URL: "postgres://u:" + password + "@h:port/d"}, "the URL of the archive database must have the form " +
			"postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full; its host, port or parameters cannot be parsed, or a certificate that it names cannot be read"},
		"a negative timeout":   {Config{URL: "/tmp/a", Timeout: -1}, "the timeout of the archive database must not be negative, and is -1ns"},
		"too many connections": {Config{URL: "/tmp/a", MaxConnections: 101}, "the number of connections to the archive database must be from 1 to 100, and is 101"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.config)
			if err == nil || err.Error() != c.want {
				t.Errorf("want %s\n got %v", c.want, err)
			}
		})
	}
}

func TestFileIsPrivate(t *testing.T) {
	for name, path := range map[string]string{
		"a new directory":         "new/er/archive.db",
		"signs that URLs reserve": "a?b=c&d#e %2F;ü/archive?mode=ro.db",
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			path := filepath.Join(directory, path)
			s := open(t, Config{URL: "sqlite://" + path})
			put(t, s, newRun(1))
			modes := map[string]fs.FileMode{}
			err := filepath.WalkDir(directory, func(at string, d fs.DirEntry, err error) error {
				if err != nil || at == directory {
					return err
				}
				info, err := d.Info()
				if err != nil {
					return err
				}
				modes[strings.TrimPrefix(at, directory+"/")] = info.Mode().Perm()
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]fs.FileMode{}
			for _, suffix := range []string{"", "-wal", "-shm"} {
				want[strings.TrimPrefix(path, directory+"/")+suffix] = 0o600
			}
			for d := filepath.Dir(path); d != directory; d = filepath.Dir(d) {
				want[strings.TrimPrefix(d, directory+"/")] = 0o700
			}
			if diff := cmp.Diff(want, modes); diff != "" {
				t.Errorf("other files or modes (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a file that all can read", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "archive.db")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		open(t, Config{URL: path})
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("want mode 0600, got %v, %v", info.Mode(), err)
		}
	})
	t.Run("a directory in place of a file", func(t *testing.T) {
		if _, err := Open(t.Context(), Config{URL: t.TempDir()}); err == nil {
			t.Error("want an error")
		}
	})
}

// What Put has acknowledged is in the files then, so a copy of them has it, as a disk has after a crash. What a crash has cut off was not
// acknowledged, and is there as a whole or not at all.
func TestCrash(t *testing.T) {
	config := newFile(t)
	s := open(t, config)
	const batches, size = 8, 5
	var ends []int64
	for n := range batches {
		put(t, s, runsFrom(n*size, n*size+size-1, withDetails(`{"suspend":true}`))...)
		info, err := os.Stat(config.URL + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, info.Size())
	}
	journal, err := os.ReadFile(config.URL + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	database, err := os.ReadFile(config.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range cuts(ends) {
		acknowledged := 0
		for acknowledged < batches && ends[acknowledged] <= cut {
			acknowledged++
		}
		path := filepath.Join(t.TempDir(), "archive.db")
		for name, data := range map[string][]byte{path: database, path + "-wal": journal[:cut]} {
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, Config{URL: path})
		if diff := cmp.Diff(reversed(namesOf(runsFrom(0, acknowledged*size-1))), listed(t, s, api.Query{}), equateEmpty); diff != "" {
			t.Errorf("cut at %d of %d bytes: other runs (-want +got):\n%s", cut, len(journal), diff)
		}
		put(t, s, newRun(1000))
	}
}

var equateEmpty = cmp.Transformer("empty", func(names []string) []string { return append([]string{}, names...) })

// cuts returns the sizes of a journal at which a crash may have cut it: at the end of each batch, and shortly before.
func cuts(ends []int64) []int64 {
	var list []int64
	for _, end := range ends {
		list = append(list, end-1, end)
	}
	return list
}

func TestSpaceIsGivenBack(t *testing.T) {
	config := newFile(t)
	s := open(t, config)
	put(t, s, runsFrom(1, 1000)...)
	pages := func(pragma string) (n int64) {
		if err := s.db.QueryRowContext(t.Context(), `PRAGMA `+pragma).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := pages("page_count")
	prune(t, s, at(950).Time, 0, 500)
	if after, free := pages("page_count"), pages("freelist_count"); after > before/4 || free >= reclaimPages {
		t.Errorf("want at most a quarter of %d pages after most runs were removed, got %d, of which %d are free", before, after, free)
	}
	if got := pages("synchronous"); got != 2 {
		t.Errorf("want full synchronization, which is 2, got %d", got)
	}
}

// explain returns how SQLite runs a statement, one step a line.
func explain(t *testing.T, s *Store, statement string, args ...any) string {
	t.Helper()
	var steps []string
	err := session{s.db, s.dialect}.each(t.Context(), func(scan func(...any) error) error {
		var id, parent, unused int
		var detail string
		err := scan(&id, &parent, &unused, &detail)
		steps = append(steps, detail)
		return err
	}, `EXPLAIN QUERY PLAN `+statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "\n")
}

// wrong returns what makes a statement slow, or nothing.
func wrong(steps string) string {
	for step := range strings.SplitSeq(steps, "\n") {
		if strings.Contains(step, "SCAN") || strings.Contains(step, "TEMP B-TREE") {
			return step
		}
	}
	return ""
}

func TestFiltersReadRangesOfAnIndex(t *testing.T) {
	s := open(t, newFile(t))
	put(t, s, randomRuns...)
	execute(t, s, `ANALYZE`) // with statistics of few runs, and without any
	for _, statistics := range []bool{true, false} {
		if !statistics {
			execute(t, s, `DELETE FROM sqlite_stat1`)
			s = open(t, Config{URL: configOf(t, s)})
		}
		for _, f := range append(filters(), filter{name: "no filter", field: api.Requirement{Field: api.FieldEndedAfter, Value: "2000-01-01T00:00:00Z"}}) {
			for _, namespace := range []string{"", "team"} {
				query := api.Query{Namespace: namespace}
				f.add(t, &query)
				p, err := planOf(query)
				if err != nil {
					t.Fatal(err)
				}
				for _, part := range p.scans(first) {
					statement, args := part.statement(p, 51)
					steps := explain(t, s, statement, args...)
					const want = "SEARCH t USING PRIMARY KEY (term=? AND ended>? AND (ended,run)<(?,?))"
					if step := wrong(steps); step != "" || !strings.HasPrefix(steps, want) {
						t.Errorf("%s in namespace %q: want %s\nand nothing else that reads much, got\n%s", f.name, namespace, want, steps)
					}
				}
			}
		}
		for name, statement := range map[string]string{
			"runs of a page": `SELECT ` + columns + ` FROM archive_runs r WHERE r.id IN (` + marks(3) + `)`,
			"a run by name":  `SELECT ` + columns + `, d.details` + named + ` ORDER BY t.ended DESC, t.run DESC LIMIT 1`,
			"a run by key":   `SELECT ` + storedColumns + ` WHERE r.run_key = ?`,
			"the oldest":     `SELECT ` + storedColumns + ` WHERE r.ended < ? ORDER BY r.ended, r.id LIMIT 100`,
			"a deletion":     `DELETE FROM archive_terms WHERE ended = ? AND run = ? AND term IN (?, ?)`,
		} {
			args := make([]any, strings.Count(statement, "?"))
			if step := wrong(explain(t, s, statement, args...)); step != "" {
				t.Errorf("%s: %s", name, step)
			}
		}
	}
	for _, statement := range []string{`SELECT run FROM archive_terms WHERE ended = 1`, `SELECT run FROM archive_terms WHERE term = x'00' ORDER BY run`} {
		if step := wrong(explain(t, s, statement)); step == "" {
			t.Errorf("%s is not found to be slow", statement)
		}
	}
}

// configOf returns the file of a store.
func configOf(t *testing.T, s *Store) (path string) {
	t.Helper()
	if err := s.db.QueryRowContext(t.Context(), `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path); err != nil {
		t.Fatal(err)
	}
	return path
}
