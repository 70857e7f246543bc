// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/parity/fixture"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type restarts = fixture.Restarts

func restartsOf(js *jobSet) restarts { return fixture.RestartsOf(js) }

func (w *world) awaitRestarts(name string, want restarts) {
	w.Helper()
	w.eventually(func() string { return cmp.Diff(want, restartsOf(w.get(name))) })
}

// awaitAttempt waits until the Jobs that are left are those of the attempt.
func (w *world) awaitAttempt(attempt int, jobs ...string) {
	w.Helper()
	w.eventually(func() string {
		got := []string{}
		for name, job := range w.jobs() {
			if job.DeletionTimestamp == nil && job.Labels[jobsetv1alpha2.RestartsKey] == fmt.Sprint(attempt) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, jobs) {
			return fmt.Sprintf("Jobs of attempt %d: got %v, want %v", attempt, got, jobs)
		}
		return ""
	})
}

// awaitGone waits until neither the set nor any of its children is there.
func (w *world) awaitGone(name string) {
	w.Helper()
	w.eventually(func() string {
		if r := w.run("", "get", "jobset/"+name, "--ignore-not-found", "-o", "name"); r.stdout != "" || r.err != nil {
			return r.String()
		}
		if jobs := w.jobs(); len(jobs) > 0 {
			return fmt.Sprintf("Jobs are left: %v", sortedKeys(jobs))
		}
		return ""
	})
}
