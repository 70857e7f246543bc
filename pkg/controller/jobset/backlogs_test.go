// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

func setWithJobs(jobs int32) *jobsetv1alpha2.JobSet {
	return &jobsetv1alpha2.JobSet{Spec: jobsetv1alpha2.JobSetSpec{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{Replicas: ptr.To(jobs)}}}}
}

// fastBacklogs are those beside a Job controller that is known to be fast.
func fastBacklogs() *backlogs {
	b := newBacklogs(clocktesting.NewFakePassiveClock(time.Now()))
	b.window = maxBacklogs
	return b
}

// TestBacklogsOfAllSetsAreBounded lets 80 large sets wait for the Job controller at the same time.
func TestBacklogsOfAllSetsAreBounded(t *testing.T) {
	b := fastBacklogs()
	key := func(i int) cache.ObjectName { return cache.NewObjectName("ns", fmt.Sprint(i)) }
	want := func(i int, jobs int32, limit int) {
		t.Helper()
		if got, _ := b.reserve(key(i), setWithJobs(jobs)); got != limit {
			t.Errorf("%d Jobs of set %d may wait, want %d", got, i, limit)
		}
	}
	want(0, 1000, plan.MaxBacklog)
	want(1, 1000, plan.MaxBacklog)
	for i := 2; i < 80; i++ {
		want(i, 1000, minBacklog)
	}
	want(80, 4, minBacklog) // a small set does not wait for the large ones
	want(0, 1000, minBacklog)

	b.note(key(1), 0, 0, false)
	want(0, 1000, maxBacklogs-78*minBacklog-4) // what the reservations of the others leave
	for i := 2; i <= 80; i++ {
		b.note(key(i), 1, 1, false)
	}
	want(0, 1000, plan.MaxBacklog)
	want(1, 1000, maxBacklogs-plan.MaxBacklog-79*2)
	for i := range 81 {
		b.note(key(i), 0, 0, false)
	}
	if b.reserved+b.waiting+b.held != 0 || len(b.sets) != 0 {
		t.Errorf("%d Jobs of %d sets count as waiting although all have been taken care of", b.waiting, len(b.sets))
	}
	b.note(key(0), 0, 5, true)
	b.forget(key(0))
	if b.reserved+b.waiting+b.held != 0 || len(b.sets) != 0 {
		t.Errorf("%d Jobs of %d sets count as waiting although the set is gone", b.waiting, len(b.sets))
	}
}

// TestBacklogOfSmallSetReservesItsJobsOnly lets sets that are decided about at the same time take no more than they can use.
func TestBacklogOfSmallSetReservesItsJobsOnly(t *testing.T) {
	b := fastBacklogs()
	for i := range 100 {
		b.reserve(cache.NewObjectName("small", fmt.Sprint(i)), setWithJobs(4))
	}
	if got, _ := b.reserve(cache.NewObjectName("ns", "large"), setWithJobs(1000)); got != plan.MaxBacklog {
		t.Errorf("%d Jobs may wait, want %d", got, plan.MaxBacklog)
	}
}

// TestBacklogsFollowThePaceOfTheJobController creates the Jobs of a large set for a minute, decided about several times
// a second, beside Job controllers that take so many of them per second. The Jobs of another set wait behind those that
// wait already.
func TestBacklogsFollowThePaceOfTheJobController(t *testing.T) {
	const decisions = 200 * time.Millisecond
	for name, tc := range map[string]struct {
		perSecond int
		// mostSeconds is how long another set may wait once the pace is known.
		mostSeconds float64
		// beside is whether Jobs of the other set wait as well.
		beside bool
	}{
		"slow":                  {5, 2, false},
		"twice as fast":         {10, 1.2, false},
		"many":                  {80, 1.2, false},
		"beside another set":    {80, 0.7, true},
		"more than the maximum": {2000, 1, false},
		"none":                  {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Now())
			b, key, small := newBacklogs(clock), cache.NewObjectName("ns", "large"), cache.NewObjectName("ns", "small")
			set := setWithJobs(100_000)
			waiting, taken, created := 0, 0, 0
			var longest float64
			for at := time.Duration(0); at < time.Minute; at += decisions {
				due := min(waiting, tc.perSecond/int(time.Second/decisions))
				waiting, taken = waiting-due, taken+due
				b.reserve(small, setWithJobs(4)) // is decided about at the same time
				limit, _ := b.reserve(key, set)
				more := max(0, limit-waiting)
				b.note(key, waiting, more, true)
				b.note(small, 0, map[bool]int{true: 1}[tc.beside], false)
				waiting, created = waiting+more, created+more
				if tc.perSecond > 0 && at >= 30*time.Second {
					longest = max(longest, float64(waiting)/float64(tc.perSecond))
				}
				clock.SetTime(clock.Now().Add(decisions))
			}
			if longest > tc.mostSeconds {
				t.Errorf("another set waits for %.1f s, want at most %.1f s", longest, tc.mostSeconds)
			}
			// A minute, but for what the first decisions find nothing of.
			if least := min(tc.perSecond, maxBacklogs/2*int(time.Second/decisions)) * 50; taken < least {
				t.Errorf("%d Jobs were taken care of in a minute, want %d or more", taken, least)
			}
			if tc.perSecond == 0 && created > firstBacklogs {
				t.Errorf("%d Jobs were created, want no more than the first %d", created, firstBacklogs)
			}
		})
	}
}

// TestPaceIsForgotten lets a large set wait after others have not for a while.
func TestPaceIsForgotten(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	b, key := newBacklogs(clock), cache.NewObjectName("ns", "large")
	b.window = 300
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{paceKept, 300}, {time.Nanosecond, firstBacklogs}} {
		clock.SetTime(clock.Now().Add(step.after))
		if got, _ := b.reserve(key, setWithJobs(1000)); got != step.want {
			t.Errorf("%d Jobs may wait, want %d", got, step.want)
		}
	}
	b.window = leastBacklogs
	clock.SetTime(clock.Now().Add(time.Hour))
	if got, _ := b.reserve(key, setWithJobs(1000)); got != leastBacklogs {
		t.Errorf("%d Jobs may wait for a slow Job controller, want %d", got, leastBacklogs)
	}
}

// TestPaceIsSharedForAWhile lets more Jobs of a set wait again once no other set has had any for some time.
func TestPaceIsSharedForAWhile(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	b, small := newBacklogs(clock), cache.NewObjectName("ns", "small")
	b.note(cache.NewObjectName("ns", "large"), 0, 100, true)
	for _, step := range []struct {
		after   time.Duration
		started int
		want    time.Duration
	}{{0, 0, paceAlone}, {0, 4, paceShared}, {0, 0, paceShared}, {sharedKept, 0, paceShared}, {time.Nanosecond, 0, paceAlone}} {
		clock.SetTime(clock.Now().Add(step.after))
		b.note(small, 0, step.started, false)
		if got := b.paceEvery(clock.Now()); got != step.want {
			t.Errorf("the pace is taken every %s, want %s", got, step.want)
		}
	}
}

// TestPaceIsThatOfTheJobController keeps the bound while sets create few Jobs.
func TestPaceIsThatOfTheJobController(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	b := newBacklogs(clock)
	for i := range 100 {
		key := cache.NewObjectName("ns", fmt.Sprint(i))
		b.reserve(key, setWithJobs(4))
		b.note(key, 0, 4, false)
		clock.SetTime(clock.Now().Add(time.Second))
		b.note(key, 0, 0, false)
	}
	if b.window != firstBacklogs {
		t.Errorf("%d Jobs may wait, want %d as before", b.window, firstBacklogs)
	}
}

// TestBacklogIsStalledIfNobodyTakesCareOfIt lets a set wait, whose Jobs are taken care of once.
func TestBacklogIsStalledIfNobodyTakesCareOfIt(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	b, key := newBacklogs(clock), cache.NewObjectName("ns", "large")
	for i, step := range []struct {
		seconds          int
		waiting, started int
		want             bool
	}{
		{0, 0, 100, false},
		{59, 100, 0, false},
		{1, 100, 100, true}, // once more so many
		{59, 200, 0, false},
		{0, 199, 0, false}, // one was taken care of
		{59, 199, 0, false},
		{1, 199, 0, true},
		{1, 199, 0, true},
		{1, 0, 0, true}, // all were
		{60, 0, 0, false},
	} {
		clock.SetTime(clock.Now().Add(time.Duration(step.seconds) * time.Second))
		if _, stalled := b.reserve(key, setWithJobs(1000)); stalled != step.want {
			t.Errorf("step %d: stalled is %v, want %v", i, stalled, step.want)
		}
		b.note(key, step.waiting, step.started, step.waiting > 0)
	}
	if len(b.sets) != 0 {
		t.Errorf("%d sets are kept although no Job waits", len(b.sets))
	}
}
