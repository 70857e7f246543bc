// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// TestFreedNamesOfLargeSetsAreGathered deletes the last hundred Jobs of a set one after the other, as a restart does, which frees a name
// every 10.1 ms. The set is looked at each time if it is small.
func TestFreedNamesOfLargeSetsAreGathered(t *testing.T) {
	const freed = 100
	for jobs, looks := range map[int]struct{ least, most int }{freed: {freed, 2 * freed}, 10_000: {2, 7}} {
		t.Run(fmt.Sprint(jobs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := newSet()
				r := newRig(t, set)
				if err := r.caches.jobSets.GetIndexer().Add(set); err != nil {
					t.Fatal(err)
				}
				for i := range jobs {
					job := newJob(fmt.Sprint("js-w-", i), set)
					job.UID = types.UID(job.Name)
					if err := r.caches.jobs.GetIndexer().Add(job); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				var got int
				var running sync.WaitGroup
				running.Go(func() {
					r.queue.Run(ctx, 1, func(ctx context.Context, key cache.ObjectName) (queue.Due, error) {
						got++
						_, _, err := r.Observe(ctx, key)
						return queue.Due{}, err
					})
				})
				for i := range freed {
					job := newJob(fmt.Sprint("js-w-", jobs-1-i), set)
					if err := r.caches.jobs.GetIndexer().Delete(job); err != nil {
						t.Fatal(err)
					}
					r.onJobs().OnDelete(job)
					time.Sleep(10100 * time.Microsecond)
				}
				cancel()
				running.Wait()
				if got < looks.least || got > looks.most {
					t.Errorf("the set was looked at %d times, want %d to %d", got, looks.least, looks.most)
				}
			})
		})
	}
}
