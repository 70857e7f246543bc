// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

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
	// jobsWithFailures is the number of Jobs whose failures are remembered. When more fail, those go first that were not
	// needed for the longest time.
	jobsWithFailures = 8192
	// failuresPerJob is the number of pods of a Job whose failures are remembered: those that failed first.
	failuresPerJob = 4
	// failuresKept is how long the failures of a Job are remembered after the last one. A Job fails within minutes of its
	// last pod.
	failuresKept = time.Hour
)

// podFailures remembers what failed in pods, also when the pods are gone: a pod may be deleted with its Job, by force, or
// with its node, before the Job says that it has failed.
type podFailures struct {
	mu sync.Mutex
	// jobs holds a map of failures by the name of the pod for each UID of a Job.
	jobs *expiring.LRUExpireCache
}

func newPodFailures() *podFailures {
	return &podFailures{jobs: expiring.NewLRUExpireCache(jobsWithFailures)}
}

// note remembers the failure of a pod, if it has one. A pod that is being deleted keeps the failure that it had before:
// containers fail too when they are stopped.
func (f *podFailures) note(pod *watchedPod) {
	if pod.failure() == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	failures := f.of(pod.jobUID())
	if failures == nil {
		failures = map[string]*helper.PodFailure{}
	}
	if _, known := failures[pod.name]; known && pod.stops {
		return
	}
	failures[pod.name] = pod.failure()
	if len(failures) > failuresPerJob {
		last := slices.MaxFunc(slices.Collect(maps.Values(failures)), func(a, b *helper.PodFailure) int {
			if a.Before(b) {
				return -1
			}
			return 1
		})
		delete(failures, last.Cause.Pod)
	}
	f.jobs.Add(pod.jobUID(), failures, failuresKept)
}

// first returns what failed first in the pods of a Job; nil if nothing was seen to fail.
func (f *podFailures) first(job types.UID) *helper.PodFailure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return helper.FirstFailure(slices.Collect(maps.Values(f.of(job)))...)
}

func (f *podFailures) of(job types.UID) map[string]*helper.PodFailure {
	known, _ := f.jobs.Get(job)
	failures, _ := known.(map[string]*helper.PodFailure)
	return failures
}

// forget is for Jobs that are gone.
func (f *podFailures) forget(job types.UID) { f.jobs.Remove(job) }
