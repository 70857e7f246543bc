// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
)

// TestReasonOfUndecidedSyncStillWaits has a second sync that only finds out that caches lag, and an event 5 ms later that shows what they
// lacked. What asked for the sync waits for that one.
func TestReasonOfUndecidedSyncStillWaits(t *testing.T) {
	const within = 20 * time.Millisecond
	key := cache.NewObjectName("ns", "name")
	for name, tc := range map[string]struct {
		gather time.Duration
		second Due
		want   []time.Duration
	}{
		"undecided":                {within, Caches(LagRetry), []time.Duration{0, within, 2 * within, 2*within + gathering}},
		"decided":                  {within, Due{}, []time.Duration{0, within, within + gathering, within + 2*gathering}},
		"undecided, for no hurry":  {gathering, Caches(LagRetry), []time.Duration{0, gathering, 2 * gathering, 3 * gathering}},
		"undecided, for no gather": {0, Caches(LagRetry), []time.Duration{0, 0, 5 * time.Millisecond, 5*time.Millisecond + gathering}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var got []time.Duration
				syncOne := func(context.Context, cache.ObjectName) (Due, error) {
					got = append(got, time.Since(begin))
					if len(got) == 2 {
						return tc.second, nil
					}
					return Due{}, nil
				}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				q := New("undecided")
				running.Go(func() { q.Run(ctx, 1, syncOne) })
				q.Add(key)
				synctest.Wait()
				q.AddWithin(key, tc.gather)
				for syncs := 2; syncs <= 3; syncs++ {
					for synctest.Wait(); len(got) < syncs; synctest.Wait() {
						time.Sleep(time.Millisecond)
					}
					time.Sleep(5 * time.Millisecond)
					q.AddSoon(key)
				}
				time.Sleep(time.Second / 2)
				cancel()
				running.Wait()
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("times of syncs (-want +got):\n%s", diff)
				}
			})
		})
	}
}
