// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// noAge is the time before which Prune removes nothing.
var noAge time.Time

func testPruneByAge(t *testing.T, s *Store) {
	put(t, s, runsFrom(1, 500)...)
	if diff := cmp.Diff([]int{0}, prune(t, s, at(1).Time, 0, 10)); diff != "" {
		t.Errorf("runs are removed that are not older (-want +got):\n%s", diff)
	}
	if n, err := s.Prune(t.Context(), at(400).Time, 0, 0); n != 0 || err == nil || err.Error() != "removing old runs: the batch must be at least 1, and is 0" {
		t.Errorf("want an error for an empty batch, got %d, %v", n, err)
	}
	n, err := s.Prune(t.Context(), at(400).Time, 0, 7)
	if err != nil || n != 7 {
		t.Fatalf("want 7 runs removed, got %d, %v", n, err)
	}
	if got := usage(t, s); got.Runs != 493 || !got.Oldest.Equal(at(8).Time) {
		t.Errorf("want 493 runs from %v, got %+v", at(8), got)
	}
	if diff := cmp.Diff([]int{300, 92}, prune(t, s, at(400).Time, 0, 300)); diff != "" {
		t.Errorf("other numbers of runs are removed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{0}, prune(t, s, at(400).Time, 0, 300)); diff != "" {
		t.Errorf("runs are removed again (-want +got):\n%s", diff)
	}
	// The floor is the end of the newest run that was removed.
	put(t, s, append(runsFrom(395, 400), newRun(1, endedAt(399.5)))...)
	if got := usage(t, s); got.Runs != 102 || !got.Oldest.Equal(at(399.5).Time) {
		t.Errorf("want 102 runs from %v, got %+v", at(399.5), got)
	}
}

func testPruneBySize(t *testing.T, s *Store) {
	put(t, s, runsFrom(1, 600, withDetails(`{"suspend":true}`))...)
	used := func() (bytes int64) {
		if err := (session{s.db, s.dialect}).row(t.Context(), s.dialect.used).Scan(&bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	full := used()
	if diff := cmp.Diff([]int{0}, prune(t, s, noAge, full, 50)); diff != "" {
		t.Errorf("runs are removed from a store that is not too large (-want +got):\n%s", diff)
	}
	total := 0
	for _, n := range prune(t, s, noAge, full/2, 50) {
		total += n
	}
	if got := used(); got > full/2 {
		t.Errorf("want at most %d bytes, got %d", full/2, got)
	}
	// Half of the bytes are about half of the runs. Removing all would be small enough too.
	if left := usage(t, s).Runs; left != int64(600-total) || left < 200 || left > 350 {
		t.Errorf("%d runs were removed, and %d are left", total, left)
	}
	if names := listed(t, s, api.Query{}); names[0] != "train-600" || names[len(names)-1] != newRun(total+1).Object.Name {
		t.Errorf("want the newest runs to be left, got %s to %s", names[len(names)-1], names[0])
	}
	put(t, s, runsFrom(1, total)...)
	if left := usage(t, s).Runs; left != int64(600-total) {
		t.Errorf("%d runs are left, and %d after runs were stored that had been removed", 600-total, left)
	}
	if diff := cmp.Diff([]string{}, missing(t, s, runsFrom(1, 600)...)); diff != "" {
		t.Errorf("runs are missing that retention has removed (-want +got):\n%s", diff)
	}
	// A limit that nothing can meet removes all runs, and ends.
	prune(t, s, noAge, 1, 1000)
	if left := usage(t, s); left.Runs != 0 || !left.Oldest.IsZero() {
		t.Errorf("want no runs, got %+v", left)
	}
	put(t, s, newRun(601))
	if !has(t, s, newRun(601)) {
		t.Error("a newer run is not stored")
	}
}

func testPruneTombstones(t *testing.T, s *Store) {
	put(t, s, runsFrom(1, 30)...)
	for _, run := range runsFrom(11, 20) {
		remove(t, s, run)
	}
	prune(t, s, at(15).Time, 0, 100)
	if n := count(t, s, "archive_tombstones"); n != 6 {
		t.Errorf("want tombstones of the 6 runs that are not old, got %d", n)
	}
	put(t, s, runsFrom(1, 30)...)
	if diff := cmp.Diff(reversed(namesOf(runsFrom(21, 30))), listed(t, s, api.Query{})); diff != "" {
		t.Errorf("other runs are stored (-want +got):\n%s", diff)
	}
	// Nothing that retention has removed, and nothing that a client has deleted, comes back when both are pruned.
	prune(t, s, at(31).Time, 0, 3)
	prune(t, s, at(31).Time, 0, 100)
	put(t, s, runsFrom(1, 30)...)
	if got := usage(t, s).Runs; got != 0 {
		t.Errorf("want no runs, got %d", got)
	}
	if n := count(t, s, "archive_tombstones"); n != 0 {
		t.Errorf("want no tombstones, got %d", n)
	}
	if diff := cmp.Diff([]string{}, missing(t, s, runsFrom(1, 30)...)); diff != "" {
		t.Errorf("runs are missing (-want +got):\n%s", diff)
	}
}

func reversed[T any](list []T) []T {
	var other []T
	for i := len(list) - 1; i >= 0; i-- {
		other = append(other, list[i])
	}
	return other
}
