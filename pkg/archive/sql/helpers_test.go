// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// longTimeout is the timeout of stores whose operations must succeed. Only the deadline of the test ends them earlier.
const longTimeout = time.Hour

// day is the time from which tests count.
var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) metav1.MicroTime {
	return metav1.NewMicroTime(day.Add(time.Duration(seconds * float64(time.Second))))
}

// newRun returns the run number n, which ended n seconds after the begin of the day and took ten seconds.
func newRun(n int, change ...func(*archive.Run)) archive.Run {
	key := api.Key{Object: types.UID("object-" + strconv.Itoa(n)), Execution: 1}
	run := archive.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Labels: map[string]string{"number": strconv.Itoa(n)}},
		Object: archive.RunObject{
			APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "train-" + strconv.Itoa(n), UID: key.Object, Execution: 1,
		},
		State: archive.RunCompleted, Reason: "AllJobsCompleted", Message: "jobset completed successfully", User: "alice",
		BeginTime: at(float64(n) - 10), EndTime: at(float64(n)), Pods: 4, Attempts: 1,
	}
	for _, f := range change {
		f(&run)
	}
	run.Name, run.UID = api.KeyOf(&run).Name(run.Object.Name), api.KeyOf(&run).UID()
	return run
}

func withDetails(spec string) func(*archive.Run) {
	return func(run *archive.Run) {
		run.Details = &archive.RunDetails{Spec: runtime.RawExtension{Raw: []byte(spec)}, Status: runtime.RawExtension{Raw: []byte(`{"restarts":1}`)}}
	}
}

func endedAt(seconds float64) func(*archive.Run) {
	return func(run *archive.Run) { run.EndTime = at(seconds) }
}

// runsFrom returns the runs with the numbers from the first to the last.
func runsFrom(first, last int, change ...func(*archive.Run)) []archive.Run {
	var runs []archive.Run
	for n := first; n <= last; n++ {
		runs = append(runs, newRun(n, change...))
	}
	return runs
}

func put(t testing.TB, s *Store, runs ...archive.Run) {
	t.Helper()
	if err := s.Put(t.Context(), runs); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, s *Store, run archive.Run) {
	t.Helper()
	if _, err := s.Delete(t.Context(), run.Namespace, run.Name, run.UID); err != nil {
		t.Fatal(err)
	}
}

// listed returns the names of all objects whose runs a query finds, page by page.
func listed(t testing.TB, s *Store, query api.Query) []string {
	t.Helper()
	names := []string{}
	for {
		page, err := s.List(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range page.Runs {
			names = append(names, run.Object.Name)
		}
		if page.Continue == "" {
			return names
		}
		if len(page.Runs) == 0 {
			t.Fatal("a page is empty and not the last one")
		}
		query.Continue = page.Continue
	}
}

func namesOf(runs []archive.Run) []string {
	names := []string{}
	for _, run := range runs {
		names = append(names, run.Object.Name)
	}
	return names
}

func missing(t testing.TB, s *Store, runs ...archive.Run) []string {
	t.Helper()
	ended := make([]api.Ended, len(runs))
	names := map[api.Key]string{}
	for i := range runs {
		ended[i] = api.Ended{Key: api.KeyOf(&runs[i]), End: runs[i].EndTime.Time}
		names[ended[i].Key] = runs[i].Object.Name
	}
	keys, err := s.Missing(t.Context(), ended)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, key := range keys {
		found = append(found, names[key])
	}
	return found
}

func has(t testing.TB, s *Store, run archive.Run) bool {
	t.Helper()
	_, err := s.Get(t.Context(), run.Namespace, run.Name)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// execute runs a statement that no method of a store runs.
func execute(t testing.TB, s *Store, statement string, args ...any) {
	t.Helper()
	if err := (session{s.db, s.dialect}).exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func count(t testing.TB, s *Store, table string) int {
	t.Helper()
	var n int
	if err := (session{s.db, s.dialect}).row(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func usage(t testing.TB, s *Store) api.Usage {
	t.Helper()
	u, err := s.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// prune calls Prune until it says that nothing is left, and returns how many runs each call has removed.
func prune(t testing.TB, s *Store, before time.Time, maxBytes int64, batch int) []int {
	t.Helper()
	var removed []int
	for {
		n, err := s.Prune(context.Background(), before, maxBytes, batch)
		if err != nil {
			t.Fatal(err)
		}
		if n > batch {
			t.Fatal(fmt.Errorf("a batch of %d runs was to be removed, and %d were", batch, n))
		}
		removed = append(removed, n)
		if n < batch {
			return removed
		}
	}
}
