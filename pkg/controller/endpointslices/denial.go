// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// deniedFirst is after which time a request that was refused is tried again, and deniedMost so after many refusals in a
// row. In between, the time doubles.
const deniedFirst, deniedMost = time.Minute, 10 * time.Minute

// denial is that the API refuses what we would have to write for a set. Until it is tried again, the cluster is to write the addresses.
type denial struct {
	set types.UID
	why cause
	// kept is why the Service cannot be given to the cluster; empty if nothing is in the way.
	kept string
	// told is what users were last told of it in an event of its own.
	told string
	// operations are the operations that were refused and not accepted since then, each with when to try it again.
	operations map[string]time.Time
	// times is the number of refusals in a row, and until is when to try all of it again.
	times int
	until time.Time
}

// refused returns whether the API, a policy or a webhook refuses what we write for a reason that lasts. Webhooks may answer with any code.
func refused(err error) bool {
	return err != nil && !children.RefusalOf(err).MayPass
}

// denied notes that an operation was refused. Several refusals before the next try count once.
func (c *Syncer) denied(ctx context.Context, obs *observed, operation string, err error) {
	why, now := slicesRefused(err), c.Clock.Now()
	if operation == operationTake || operation == operationLeave {
		why = serviceRefused(obs.service.Name, err)
	} else {
		c.accepted.Store(false)
	}
	next, _ := children.AskAgain(err) // another party undoes it
	if c.memory.deny(obs.key, obs.set.id(), operation, why, now, next) {
		klog.FromContext(ctx).Error(err, "A request is refused, trying again later", "set", obs.key, "operation", operation)
	}
}

// deny notes that an operation was refused, and returns whether that is news. It is tried again at next; zero if that follows from how
// often it was refused.
func (m *memory) deny(key cache.ObjectName, set types.UID, operation string, why cause, now, next time.Time) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.denials[key]
	if d == nil || d.set != set {
		d = &denial{set: set, operations: map[string]time.Time{}}
		m.denials[key] = d
	}
	if operation == operationLeave {
		d.kept = why.Message
	}
	news = !d.has(operation)
	if !d.holds(now) {
		d.why, d.until = why, next
		if next.IsZero() {
			d.until = now.Add(min(deniedFirst<<min(d.times, 20), deniedMost))
		}
		d.times++
	}
	d.operations[operation] = d.until
	return news
}

// allowed notes that an operation was accepted. If this controller is to write the addresses, users are told of the next denial again.
func (m *memory) allowed(obs *observed, operation string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.denials[obs.key]
	if d == nil {
		return
	}
	if obs.verdict == byUs {
		d.told = ""
	}
	if delete(d.operations, operation); len(d.operations) == 0 {
		delete(m.denials, obs.key)
	}
}

// tell returns whether users are to be told something about a denial, unless they were told so last. The words of an
// answer may be others each time.
func (m *memory) tell(key cache.ObjectName, what string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.denials[key]
	if d == nil || d.told == what {
		return false
	}
	d.told = what
	return true
}

// denialOf returns what the API refuses for a set. It is the zero denial if it refuses nothing, as far as is known.
func (m *memory) denialOf(key cache.ObjectName, set types.UID) denial {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.denials[key]
	if d == nil || d.set != set {
		return denial{}
	}
	is := *d
	is.operations = maps.Clone(d.operations)
	return is
}

// holds returns whether the denial is not to be tried again yet.
func (d *denial) holds(now time.Time) bool { return now.Before(d.until) }

// has returns whether an operation was refused.
func (d *denial) has(operation string) bool {
	_, has := d.operations[operation]
	return has
}

// bars returns whether an operation was refused, and is not to be tried again yet. When it is time, the refusal of one
// operation does not bar another one.
func (d *denial) bars(operation string, now time.Time) bool {
	return now.Before(d.operations[operation])
}

// bars returns whether the API refuses an operation for a set at present.
func (c *Syncer) bars(obs *observed, operation string) bool {
	d := c.memory.denialOf(obs.key, obs.set.id())
	return d.bars(operation, c.Clock.Now())
}

// soonest returns the shorter one of two times to wait; 0 means that there is none.
func soonest(a, b time.Duration) time.Duration {
	switch {
	case a <= 0:
		return max(b, 0)
	case b <= 0:
		return a
	}
	return min(a, b)
}
