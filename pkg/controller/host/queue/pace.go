// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

const (
	// minBackoff lets the first event about a failure be stored before the second one, which then joins its series.
	minBackoff = 100 * time.Millisecond
	// maxBackoff keeps a child that is refused for ever (a pod template that the Job API does not accept) at half a
	// request per minute, and a name that becomes free from waiting long.
	maxBackoff = 2 * time.Minute
)

// Due says when an object is synced again although nothing happens to it.
type Due struct {
	// Deadline is the time after which a rule changes its mind, like the end of a time limit; 0 for none.
	Deadline time.Duration
	// Acts is the time to the next deadline that acts: the end of a time limit, or the time at which a denied child is asked for again. The
	// backoff of a failure does not delay it; 0 for none. What is due then acts once, or waits for a later time of its own.
	Acts time.Duration
	// Denied means that nothing has failed but requests that a server has decided against. Each of them has a time of its own, so that no
	// backoff is due.
	Denied bool
	// Continue means that more is to be done at once. It may be set only if something of this sync was accepted by a
	// server: otherwise the next sync would be like this one. It has no effect after a failure.
	Continue bool
	// Undecided means that the sync has only found out that caches are not recent enough. Failures before it still count.
	Undecided bool
}

// LagRetry is when to look at an object again while a cache lags behind the controller's own writes. The event that the
// cache waits for usually comes first.
const LagRetry = time.Second

// After is due after a time; 0 for never.
func After(deadline time.Duration) Due { return Due{Deadline: deadline} }

// Caches is due after the time that caches need to be recent enough; 0 if they are.
func Caches(wait time.Duration) Due { return Due{Deadline: wait, Undecided: wait > 0} }

// Pace decides when one object is synced again, for all kinds alike. The zero value means that the last sync of the object has succeeded.
type Pace struct {
	// failures is the number of syncs in a row that have failed and accepted nothing.
	failures int
	// early means that a deadline has come before the end of the last backoff.
	early bool
}

// Next returns the time to the next sync, and false if there is none. After a failure that is the backoff, which
// doubles with each failure. A deadline that acts comes before its end. Another one may, but not twice in a row: then a
// deadline that is always near would take the place of the backoff.
func (p *Pace) Next(due Due, failed bool) (time.Duration, bool) {
	if failed = failed && !due.Denied; !failed && !due.Undecided {
		*p = Pace{}
	}
	switch {
	case !failed && due.Continue:
		return 0, true
	case !failed:
		after := plan.Sooner(due.Deadline, due.Acts)
		return after, after > 0
	}
	backoff := min(minBackoff<<min(p.failures, 20), maxBackoff)
	p.failures++
	p.early = !p.early && due.Deadline > 0 && due.Deadline < backoff
	if p.early {
		backoff = due.Deadline
	}
	return plan.Sooner(backoff, due.Acts), true
}
