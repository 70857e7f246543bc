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

func (e *env) awaitRestarts(name string, want restarts) {
	e.Helper()
	e.eventually(func() string { return cmp.Diff(want, restartsOf(e.get(name))) })
}

// awaitAttempt waits until exactly these Jobs of the attempt are left.
func (e *env) awaitAttempt(attempt int, jobs ...string) {
	e.Helper()
	e.eventually(func() string {
		got := []string{}
		for name, job := range e.jobs() {
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
func (e *env) awaitGone(name string) {
	e.Helper()
	e.eventually(func() string {
		if r := e.run("", "get", "jobset/"+name, "--ignore-not-found", "-o", "name"); r.stdout != "" || r.err != nil {
			return r.String()
		}
		if jobs := e.jobs(); len(jobs) > 0 {
			return fmt.Sprintf("Jobs are left: %v", sortedKeys(jobs))
		}
		return ""
	})
}
