// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/fuzzer"
	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// suite is what both databases are tested with. create returns the configuration of an empty database.
func suite(t *testing.T, create func(t *testing.T) Config) {
	fresh := func(t *testing.T) *Store { return open(t, create(t)) }
	for name, test := range map[string]func(t *testing.T, s *Store){
		"a run is returned as it was stored":                       testRoundTrip,
		"a run is replaced unless it ended earlier":                testUpsert,
		"all runs of a batch are stored, or none":                  testAllOrNone,
		"a run that a client deleted stays deleted":                testTombstone,
		"only the run with the name and the UID is deleted":        testDeleteOther,
		"missing runs are those that Put would store":              testMissing,
		"deleting a run leaves nothing but a tombstone":            testNothingLeft,
		"runs are removed by age in batches, oldest first":         testPruneByAge,
		"runs are removed by size in batches, oldest first":        testPruneBySize,
		"tombstones give way to the floor":                         testPruneTombstones,
		"queries find what matches, newest first":                  testQueries,
		"pages are complete while runs are added":                  testPagesMeanwhile,
		"a token continues its own query only":                     testTokens,
		"a bad query is an error that says what is allowed":        testBadQueries,
		"hostile values are stored, found and deleted like others": testHostile,
		"a damaged run is listed, read, deleted and pruned":        testDamaged,
		"a run that is too large is refused":                       testTooLarge,
		"runs are found by the first 256 of their labels":          testManyLabels,
		"a page has at most 500 runs":                              testLargestPage,
		"a run that began after its end is found by its end":       testSkewedClocks,
		"a closed store answers errors":                            testClosed,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
	for name, test := range map[string]func(t *testing.T, config Config){
		"servers that start at the same time create the tables once": testMigrateTogether,
		"a schema of a newer server is refused":                      testNewerSchema,
		"servers write at the same time":                             testTwoServers,
		"a writer that waits too long returns an error and recovers": testLocked,
	} {
		t.Run(name, func(t *testing.T) { test(t, create(t)) })
	}
}

// open returns a store that is closed at the end of the test.
func open(t testing.TB, config Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.(*Store)
}

func testRoundTrip(t *testing.T, s *Store) {
	fill := randfill.NewWithSeed(1).NilChance(0.2).NumElements(1, 3).MaxDepth(6).Funcs(fuzzer.Funcs(serializer.CodecFactory{})...)
	for i := range 20 {
		run := newRun(i)
		var random archive.Run
		fill.Fill(&random.Object.Owner)
		fill.Fill(&random.Resources)
		fill.Fill(&random.Children)
		run.Object.Owner, run.Resources, run.Children = random.Object.Owner, random.Resources, random.Children
		fill.Fill(&run.GoodMilliseconds)
		fill.Fill(&run.Details)
		run.Failures = []archive.RunFailure{{Attempt: 1, Child: "workers-0", Node: "node-1", Reason: "OOMKilled", Message: "it took too much"}}
		run.Annotations = map[string]string{"kept": "yes"}
		put(t, s, run)

		got, err := s.Get(t.Context(), run.Namespace, run.Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(run, *got); diff != "" {
			t.Errorf("Get returned another run (-want +got):\n%s", diff)
		}
		run.Details = nil
		page, err := s.List(t.Context(), api.Query{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]archive.Run{run}, page.Runs); diff != "" {
			t.Errorf("List returned other runs (-want +got):\n%s", diff)
		}
	}
	if _, err := s.Get(t.Context(), "other", newRun(1).Name); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("want ErrNotFound for the name in another namespace, got %v", err)
	}
}

func testUpsert(t *testing.T, s *Store) {
	message := func(text string) func(*archive.Run) { return func(run *archive.Run) { run.Message = text } }
	for i, step := range []struct {
		end           float64
		message, want string
	}{
		{5, "first", "first"},
		{5, "the same end", "the same end"},
		{9, "a later end", "a later end"},
		{8, "an earlier end", "a later end"},
	} {
		put(t, s, newRun(1, endedAt(step.end), message(step.message)))
		got, err := s.Get(t.Context(), "team", newRun(1).Name)
		if err != nil {
			t.Fatal(err)
		}
		if got.Message != step.want {
			t.Errorf("step %d: want the message %q, got %q", i, step.want, got.Message)
		}
	}
	put(t, s, newRun(2, message("old")), newRun(2, endedAt(3), message("new")))
	if diff := cmp.Diff([]string{"train-1", "train-2"}, listed(t, s, api.Query{})); diff != "" {
		t.Errorf("other runs are stored (-want +got):\n%s", diff)
	}
	// Terms of the run that was replaced must not find it any more.
	put(t, s, newRun(2, endedAt(4), func(run *archive.Run) { run.User, run.Labels = "bob", nil }))
	for user, want := range map[string][]string{"alice": {"train-1"}, "bob": {"train-2"}} {
		got := listed(t, s, api.Query{Fields: []api.Requirement{{Field: api.FieldUser, Value: user}}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("user %s has other runs (-want +got):\n%s", user, diff)
		}
	}
	if n := count(t, s, "archive_details"); n != 2 {
		t.Errorf("want the details of 2 runs, got %d", n)
	}
}

func testAllOrNone(t *testing.T, s *Store) {
	bad := newRun(2, withDetails(`{"not": JSON}`))
	err := s.Put(t.Context(), []archive.Run{newRun(1), bad, newRun(3)})
	if err == nil || !strings.Contains(err.Error(), bad.Name) {
		t.Errorf("want an error with the name of the run, got %v", err)
	}
	if diff := cmp.Diff([]string{}, listed(t, s, api.Query{})); diff != "" {
		t.Errorf("runs of the batch are stored (-want +got):\n%s", diff)
	}
	if err := s.Put(t.Context(), nil); err != nil {
		t.Errorf("want no error for no runs, got %v", err)
	}
}

func testTombstone(t *testing.T, s *Store) {
	run := newRun(1)
	put(t, s, run, newRun(2))
	deleted, err := s.Delete(t.Context(), run.Namespace, run.Name, run.UID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run, *deleted); diff != "" {
		t.Errorf("Delete returned another run (-want +got):\n%s", diff)
	}
	put(t, s, newRun(1, endedAt(100)), newRun(3))
	if diff := cmp.Diff([]string{"train-3", "train-2"}, listed(t, s, api.Query{})); diff != "" {
		t.Errorf("other runs are stored (-want +got):\n%s", diff)
	}
	if _, err := s.Delete(t.Context(), run.Namespace, run.Name, run.UID); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("want ErrNotFound for a run that is deleted, got %v", err)
	}
}

func testDeleteOther(t *testing.T, s *Store) {
	run := newRun(1)
	put(t, s, run)
	for name, args := range map[string][3]string{
		"another UID":       {run.Namespace, run.Name, "other"},
		"another name":      {run.Namespace, "other", string(run.UID)},
		"another namespace": {"other", run.Name, string(run.UID)},
		"no namespace":      {"", run.Name, string(run.UID)},
	} {
		if _, err := s.Delete(t.Context(), args[0], args[1], types.UID(args[2])); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%s: want ErrNotFound, got %v", name, err)
		}
	}
	if !has(t, s, run) {
		t.Error("the run is gone")
	}
}

func testMissing(t *testing.T, s *Store) {
	put(t, s, runsFrom(1, 600)...)
	remove(t, s, newRun(600))
	prune(t, s, at(50).Time, 0, 100)
	runs := append(runsFrom(1, 700), newRun(55, endedAt(56)))
	want := namesOf(append(runsFrom(601, 700), newRun(55)))
	if diff := cmp.Diff(want, missing(t, s, runs...)); diff != "" {
		t.Errorf("other runs are missing (-want +got):\n%s", diff)
	}
	put(t, s, runs...)
	if diff := cmp.Diff([]string{}, missing(t, s, runs...)); diff != "" {
		t.Errorf("runs are missing after Put (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{}, missing(t, s)); diff != "" {
		t.Errorf("runs are missing of none (-want +got):\n%s", diff)
	}
}

func testNothingLeft(t *testing.T, s *Store) {
	for n := range 3 {
		put(t, s, newRun(n, withDetails(`{}`)), newRun(n, endedAt(100), withDetails(`{"a":1}`)))
		remove(t, s, newRun(n))
	}
	got := map[string]int{}
	for _, table := range []string{"archive_runs", "archive_details", "archive_terms", "archive_tombstones"} {
		got[table] = count(t, s, table)
	}
	want := map[string]int{"archive_runs": 0, "archive_details": 0, "archive_terms": 0, "archive_tombstones": 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other rows are left (-want +got):\n%s", diff)
	}
	var bytes int64
	if err := (session{s.db, s.dialect}).row(t.Context(), `SELECT value FROM archive_meta WHERE name = 'bytes'`).Scan(&bytes); err != nil || bytes != 0 {
		t.Errorf("want 0 bytes counted, got %d, %v", bytes, err)
	}
}
