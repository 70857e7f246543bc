// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

func named(name string) cache.ObjectName { return cache.NewObjectName("ns", name) }

// TestOrderOfObjectsThatTakeLong has four workers, which are busy with so many objects that take long.
func TestOrderOfObjectsThatTakeLong(t *testing.T) {
	for name, tc := range map[string]struct {
		long, busy int
		want       string
	}{
		"none takes long":                  {0, 0, "a b c d"},
		"all take long":                    {4, 0, "a b c d"},
		"two take turns with the others":   {2, 0, "c a d b"},
		"no more than half of the workers": {2, 2, "c d a b"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrder()
			o.setWorkers(4)
			for i := range tc.busy {
				key := named(fmt.Sprint("busy-", i))
				o.end(key, true)
				o.begin(key)
			}
			for i, one := range strings.Fields("a b c d") {
				o.end(named(one), i < tc.long)
				o.Push(named(one))
			}
			var got []string
			for o.Len() > 0 {
				got = append(got, o.Pop().Name)
			}
			diff(t, "order", tc.want, strings.Join(got, " "))
		})
	}
	o := newOrder()
	for _, cut := range []bool{true, false} {
		o.begin(named("a"))
		o.end(named("a"), cut)
	}
	diff(t, "objects that are remembered once all is done", 0, len(o.takesLong)+o.running)
}

// TestTurnsAreOverWhenOthersWait syncs an object that takes 30 turns, with one worker.
func TestTurnsAreOverWhenOthersWait(t *testing.T) {
	const all = 30 * turnLength
	for name, tc := range map[string]struct {
		others int
		want   []string
	}{
		"no other waits":  {0, []string{"long 6s"}},
		"two others wait": {2, []string{"long 200ms", "other-0 200ms", "long 400ms", "other-1 400ms", "long 6s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				q, left := New("turns"), all
				begin := time.Now()
				var got []string
				syncOne := func(ctx context.Context, key cache.ObjectName) (Due, error) {
					for key.Name == "long" && left > 0 && !TurnOver(ctx) {
						time.Sleep(turnLength / 10)
						left -= turnLength / 10
					}
					if key.Name == "long" && left > 0 {
						EndTurn(ctx)
						if ctx.Err() == nil {
							t.Error("the context of the sync goes on")
						}
					}
					got = append(got, fmt.Sprint(key.Name, " ", time.Since(begin)))
					return Due{}, nil
				}
				var running sync.WaitGroup
				q.Add(named("long"))
				running.Go(func() { q.Run(ctx, 1, syncOne) })
				synctest.Wait()
				for i := range tc.others {
					q.Add(named(fmt.Sprint("other-", i)))
				}
				time.Sleep(time.Minute)
				cancel()
				running.Wait()
				diff(t, "what was synced, and when it ended", tc.want, got)
			})
		})
	}
}

// TestPostponeOnlyWhatIsNotKnown lets each sync ask whether it goes on.
func TestPostponeOnlyWhatIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q := New("postpone")
		var got []string
		syncOne := func(ctx context.Context, key cache.ObjectName) (Due, error) {
			got = append(got, fmt.Sprint(key.Name, " ", strings.HasPrefix(key.Name, "long") && Postpone(ctx)))
			return Due{}, nil
		}
		for _, name := range []string{"long-0", "long-1", "other"} {
			q.Add(named(name))
		}
		var running sync.WaitGroup
		running.Go(func() { q.Run(ctx, 1, syncOne) })
		synctest.Wait()
		cancel()
		running.Wait()
		diff(t, "syncs, and which were postponed", []string{"long-0 true", "long-1 true", "other false", "long-0 false", "long-1 false"}, got)
	})
	if Postpone(t.Context()) || TurnOver(t.Context()) {
		t.Error("a sync without a queue has had its turn")
	}
	EndTurn(t.Context())
}

// TestGatherBoundsSyncsOfLargeObjects has the children of an object change every 9.1 ms for 9.1 s, for a reason that something waits for.
func TestGatherBoundsSyncsOfLargeObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		gather time.Duration
		add    func(*Queue, cache.ObjectName)
		want   int
	}{
		"few children":            {0, func(q *Queue, key cache.ObjectName) { q.AddWithin(key, 0) }, 1000},
		"many children":           {200 * time.Millisecond, func(q *Queue, key cache.ObjectName) { q.AddWithin(key, 0) }, 46},
		"many children, soon":     {200 * time.Millisecond, (*Queue).AddSoon, 31},
		"no more than the limit":  {time.Hour, func(q *Queue, key cache.ObjectName) { q.AddWithin(key, 0) }, 2},
		"a reason of another one": {time.Hour, (*Queue).Add, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				q, got := New("gathered"), 0
				var running sync.WaitGroup
				running.Go(func() {
					q.Run(ctx, 1, func(ctx context.Context, _ cache.ObjectName) (Due, error) {
						got++
						Gather(ctx, tc.gather)
						return Due{}, nil
					})
				})
				for range 1000 {
					tc.add(q, named("large"))
					time.Sleep(9100 * time.Microsecond)
				}
				cancel()
				running.Wait()
				diff(t, "syncs", tc.want, got)
			})
		})
	}
	Gather(t.Context(), time.Hour) // without a queue
}
