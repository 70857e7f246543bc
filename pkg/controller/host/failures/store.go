// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package failures

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

const (
	// MaxJobs is the number of Jobs whose failures are remembered. When more fail, those go first that were not
	// needed for the longest time.
	MaxJobs = 8192
	// PerJob is the number of pods of a Job whose failures are remembered: those that failed first.
	PerJob = 4
	// keptFor is how long the failures of a Job are remembered after the last one. A Job fails within minutes of its
	// last pod.
	keptFor = time.Hour
)

// Store remembers what failed in pods, also when the pods are gone: a pod may be deleted with its Job, by force, or
// with its node, before the Job says that it has failed.
type Store struct {
	mu sync.Mutex
	// jobs holds a map of failures by the name of the pod for each UID of a Job.
	jobs *expiring.LRUExpireCache
}

// NewStore returns a Store that remembers nothing.
func NewStore() *Store {
	return &Store{jobs: expiring.NewLRUExpireCache(MaxJobs)}
}

// Note remembers the failure of a pod, if it has one. A pod that is being deleted keeps the failure that it had before:
// containers fail too when they are stopped.
func (f *Store) Note(pod *Pod) {
	if pod.Failure() != nil {
		f.NoteFailure(pod.JobUID(), pod.Failure(), pod.stops())
	}
}

// NoteFailure remembers the failure of a pod of an owner of any kind. stops means that the pod is being deleted.
func (f *Store) NoteFailure(owner types.UID, failure *helper.PodFailure, stops bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	failures := f.of(owner)
	if failures == nil {
		failures = map[string]*helper.PodFailure{}
	}
	if _, known := failures[failure.Cause.Pod]; known && stops {
		return
	}
	failures[failure.Cause.Pod] = failure
	if len(failures) > PerJob {
		last := slices.MaxFunc(slices.Collect(maps.Values(failures)), func(a, b *helper.PodFailure) int {
			if a.Before(b) {
				return -1
			}
			return 1
		})
		delete(failures, last.Cause.Pod)
	}
	f.jobs.Add(owner, failures, keptFor)
}

// First returns what failed first in the pods of a Job; nil if nothing was seen to fail.
func (f *Store) First(job types.UID) *helper.PodFailure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return helper.FirstFailure(slices.Collect(maps.Values(f.of(job)))...)
}

func (f *Store) of(job types.UID) map[string]*helper.PodFailure {
	known, _ := f.jobs.Get(job)
	failures, _ := known.(map[string]*helper.PodFailure)
	return failures
}

// Forget is for Jobs that are gone.
func (f *Store) Forget(job types.UID) { f.jobs.Remove(job) }

// Count returns the number of pods of a Job whose failures are remembered.
func (f *Store) Count(job types.UID) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.of(job))
}
