// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
)

func TestPace(t *testing.T) {
	type sync struct {
		due    Due
		failed bool
	}
	failure := func(deadline time.Duration) sync { return sync{After(deadline), true} }
	const never = -1
	for name, tc := range map[string]struct {
		syncs []sync
		want  []time.Duration
	}{
		"nothing is due after a success":      {[]sync{{}}, []time.Duration{never}},
		"a deadline is kept after a success":  {[]sync{{After(time.Hour), false}}, []time.Duration{time.Hour}},
		"the backoff doubles":                 {[]sync{failure(0), failure(0), failure(0)}, []time.Duration{minBackoff, 2 * minBackoff, 4 * minBackoff}},
		"a success ends the backoff":          {[]sync{failure(0), failure(0), {}, failure(0)}, []time.Duration{minBackoff, 2 * minBackoff, never, minBackoff}},
		"a deadline after the backoff waits":  {[]sync{failure(time.Second)}, []time.Duration{minBackoff}},
		"a deadline comes before the backoff": {[]sync{failure(0), failure(time.Millisecond)}, []time.Duration{minBackoff, time.Millisecond}},
		"but not twice in a row": {
			[]sync{failure(time.Millisecond), failure(time.Millisecond), failure(time.Millisecond)}, []time.Duration{time.Millisecond, 2 * minBackoff, time.Millisecond},
		},
		"what is continued does not wait":      {[]sync{{Due{Continue: true, Deadline: time.Hour}, false}}, []time.Duration{0}},
		"nothing is continued after a failure": {[]sync{{Due{Continue: true}, true}, {Due{Continue: true}, true}}, []time.Duration{minBackoff, 2 * minBackoff}},
		"a denied child delays nothing":        {[]sync{{Due{Continue: true, Denied: true, Acts: time.Minute}, true}, failure(0)}, []time.Duration{0, minBackoff}},
		"a denied child has a time of its own": {[]sync{failure(0), {Due{Denied: true, Acts: time.Minute}, true}, failure(0)}, []time.Duration{minBackoff, time.Minute, minBackoff}},
		"deadlines that act are not behind the backoff": {
			append(slices.Repeat([]sync{failure(0)}, 12), sync{Due{Acts: 10 * time.Second}, true}, sync{Due{Acts: 10 * time.Second}, true}, sync{Due{Acts: time.Hour}, true}),
			append(doubling(12), 10*time.Second, 10*time.Second, maxBackoff),
		},
		"failures count beyond a wait for caches":    {[]sync{failure(0), {Caches(time.Second), false}, failure(0)}, []time.Duration{minBackoff, time.Second, 2 * minBackoff}},
		"an object that is gone has nothing to wait": {[]sync{failure(0), {Caches(0), false}, failure(0)}, []time.Duration{minBackoff, never, minBackoff}},
	} {
		t.Run(name, func(t *testing.T) {
			var pace Pace
			var got []time.Duration
			for _, s := range tc.syncs {
				after, again := pace.Next(s.due, s.failed)
				if !again {
					after = never
				}
				got = append(got, after)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("times to the next sync (-want +got):\n%s", diff)
			}
		})
	}
}

// doubling returns the first pauses after failures.
func doubling(failures int) (pauses []time.Duration) {
	for i := range failures {
		pauses = append(pauses, min(minBackoff<<i, maxBackoff))
	}
	return pauses
}

// TestRefusedObjectsAreSyncedSeldom runs objects for an hour that are refused whenever they are synced, whatever their
// kind says about the next sync.
func TestRefusedObjectsAreSyncedSeldom(t *testing.T) {
	for name, due := range map[string]Due{
		"nothing is due":             {},
		"a deadline is always near":  After(50 * time.Millisecond),
		"a deadline in some seconds": After(15 * time.Second),
		"a deadline is far":          After(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late int
				begin := time.Now()
				refuse := func(context.Context, cache.ObjectName) (Due, error) {
					if time.Since(begin) > 10*time.Minute {
						late++
					}
					return due, errors.New("refused")
				}
				runQueue(t, "refused", 1, refuse, func(q *Queue) {
					q.Add(cache.NewObjectName("ns", "name"))
					time.Sleep(70 * time.Minute)
				})
				if late < 20 || late > 2*60 {
					t.Errorf("%d syncs in an hour after ten minutes, want 20 to 120: at most 2 a minute", late)
				}
			})
		})
	}
}

// TestDeadlinesThatActAreKept has an object with time limits that end 10 and 20 s after syncs have failed for long: it is synced when
// they end, and not when the backoff does.
func TestDeadlinesThatActAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limits []time.Time
		var late []time.Duration
		failures := 0
		failing := func(context.Context, cache.ObjectName) (Due, error) {
			now, due := time.Now(), Due{}
			if failures++; failures == 12 {
				limits = []time.Time{now.Add(10 * time.Second), now.Add(20 * time.Second)}
			}
			for len(limits) > 0 && !limits[0].After(now) {
				late, limits = append(late, now.Sub(limits[0])), limits[1:]
			}
			if len(limits) > 0 {
				due.Acts = limits[0].Sub(now)
			}
			return due, errors.New("refused")
		}
		runQueue(t, "failing", 1, failing, func(q *Queue) {
			q.Add(cache.NewObjectName("ns", "name"))
			time.Sleep(20 * time.Minute)
		})
		if diff := cmp.Diff([]time.Duration{0, 0}, late); diff != "" {
			t.Errorf("how late the limits are acted on (-want +got):\n%s", diff)
		}
	})
}
