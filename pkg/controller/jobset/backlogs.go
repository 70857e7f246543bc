// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

const (
	// maxBacklogs is how many Jobs of all sets together may wait for the cluster's Job controller, however fast it is. It takes Jobs in
	// the order of their creation, so a user who creates many large sets would delay everybody else without this bound.
	maxBacklogs = 2 * plan.MaxBacklog
	// firstBacklogs is how many may wait, at most, while it is not known how fast the Job controller is, and leastBacklogs if it is very slow.
	firstBacklogs = 40
	leastBacklogs = 10
	// minBacklog is how many Jobs of one set may wait even then. A set with no more Jobs than that never waits for other sets.
	minBacklog = 10
	// paceAlone is how long the Job controller is watched before the bound changes. The bound is what it takes care of in this time. A Job of
	// another set waits that long twice: before its pods are created, and, once they are ready, before it shows them. While Jobs of several
	// sets wait, and for sharedKept afterwards, the time is paceShared. Then the Job controller runs out of Jobs more often.
	paceAlone, paceShared = time.Second, time.Second / 2
	sharedKept            = 5 * time.Second
	// paceKept is how long the pace is taken for that of the Job controller after Jobs have waited. It takes suspended Jobs much faster than
	// others, and is slower while it has other work.
	paceKept = 5 * time.Second
)

// backlogs are how many Jobs of each set wait for the Job controller, as of the last decision about the set. A set whose Jobs
// wait is decided about again as soon as that controller takes care of one of them.
//
// How many may wait follows from the pace of the Job controller. It makes three requests for a Job until its pod exists
// and the Job shows it, which are about seven Jobs per second with the default limit of kube-controller-manager, and
// hundreds with higher ones.
type backlogs struct {
	clock children.Clock

	mu   sync.Mutex
	sets map[cache.ObjectName]setBacklog
	// reserved and waiting are the sums for all sets, and held is the number of those that are.
	reserved, waiting, held int
	// window is how many may wait in all.
	window int
	// taken is how many Jobs were taken care of since a time, since when more would have waited if they might; zero if not.
	taken int
	since time.Time
	// known is when the window was last what the pace of the Job controller allows.
	known time.Time
	// waiters is the number of sets of which Jobs wait, and shared is when there were last several.
	waiters int
	shared  time.Time
}

// setBacklog is the backlog of one set.
type setBacklog struct {
	// reserved is how many Jobs may wait until the decision is known, then as many as do.
	reserved int
	// waiting is how many did after the last decision.
	waiting int
	// since is when one of them was taken care of last, or another one came; zero if none waits.
	since time.Time
	// held means that more would wait if they might.
	held bool
}

func newBacklogs(clock children.Clock) *backlogs {
	return &backlogs{clock: clock, sets: map[cache.ObjectName]setBacklog{}, window: firstBacklogs, known: clock.Now()}
}

// reserve returns how many Jobs of a set may wait, and counts them until the decision is known. Other sets may be decided about
// at the same time. It also returns whether none of those that wait has been taken care of for long.
func (b *backlogs) reserve(key cache.ObjectName, js *jobsetv1alpha2.JobSet) (limit int, stalled bool) {
	jobs := 0
	for i := range js.Spec.ReplicatedJobs {
		jobs += int(helper.Replicas(&js.Spec.ReplicatedJobs[i]))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since.IsZero() && b.clock.Now().Sub(b.known) > paceKept {
		b.window = min(b.window, firstBacklogs)
	}
	last := b.sets[key]
	limit = min(plan.MaxBacklog, max(minBacklog, b.window-(b.reserved-last.reserved)))
	next := last
	next.reserved = min(limit, jobs)
	b.set(key, next)
	return limit, last.waiting > 0 && b.clock.Now().Sub(last.since) >= plan.BacklogTimeout
}

// release ends the reservation for a set about which nothing was decided.
func (b *backlogs) release(key cache.ObjectName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.sets[key]
	next.reserved = next.waiting
	b.set(key, next)
}

// note replaces what is known about a set: how many of its Jobs were seen to wait, how many were created or resumed then, and whether more
// would have been.
func (b *backlogs) note(key cache.ObjectName, waiting, started int, held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.sets[key]
	b.taken += max(0, last.waiting-waiting)
	next := setBacklog{reserved: waiting + started, waiting: waiting + started, since: last.since, held: held}
	if waiting < last.waiting || started > 0 || last.since.IsZero() {
		next.since = b.clock.Now()
	}
	if next.waiting == 0 {
		next.since = time.Time{}
	}
	b.set(key, next)
	b.pace()
}

// forget is for a set that is gone.
func (b *backlogs) forget(key cache.ObjectName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(key, setBacklog{})
}

// pace changes the bound, by half or double at most, if more Jobs would have waited for some time if they might: how
// many were taken care of is the pace of the Job controller then, and not of those who create Jobs. Fewer wait than may
// while other sets are decided about; far fewer if Jobs are refused.
func (b *backlogs) pace() {
	now := b.clock.Now()
	if full := b.held > 0 && b.waiting >= b.window/2; !full || b.since.IsZero() {
		b.taken, b.since = 0, time.Time{}
		if full {
			b.since, b.known = now, now
		}
		return
	}
	b.known = now
	if now.Sub(b.since) < b.paceEvery(now) {
		return
	}
	next := min(max(b.taken, b.window/2), 2*b.window)
	b.window = min(max(next, leastBacklogs), maxBacklogs)
	b.taken, b.since = 0, now
}

// paceEvery returns how long the Job controller is watched before the bound changes.
func (b *backlogs) paceEvery(now time.Time) time.Duration {
	if now.Sub(b.shared) <= sharedKept {
		return paceShared
	}
	return paceAlone
}

func (b *backlogs) set(key cache.ObjectName, next setBacklog) {
	last := b.sets[key]
	b.reserved += next.reserved - last.reserved
	b.waiting += next.waiting - last.waiting
	b.held += count(next.held) - count(last.held)
	if b.waiters += count(next.waiting > 0) - count(last.waiting > 0); b.waiters > 1 {
		b.shared = b.clock.Now()
	}
	if b.sets[key] = next; next == (setBacklog{}) {
		delete(b.sets, key)
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
