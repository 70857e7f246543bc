// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Addresses of new pods gather for gatherPerPod for each pod of the set, from minGather to maxGather, unless the last pod has its address. That of the pod
// that others look for waits for minSettle, in which a small set has all of its addresses. Addresses that must go wait for settlePerPod, from minSettle to maxSettle, and no set is written more often.
const (
	gatherPerPod, minGather, maxGather = 10 * time.Millisecond, 200 * time.Millisecond, 5 * time.Second
	settlePerPod, minSettle, maxSettle = 2 * time.Millisecond, 100 * time.Millisecond, time.Second
	// resync is after which time a set is looked at if nothing waits.
	resync = 10 * time.Minute
)

// pace is what decides when the slices of a set are written.
type pace struct {
	// pods is the number of pods that have not ended and are not deleted, and listed of those of them that have an address. ended is the number of those that have ended.
	pods, listed, ended int
	// added is since when a new address waits, and outdated since when one that is listed is wrong; zero if none is.
	added, outdated time.Time
	// firstAt is since when the address of the pod waits that others look for before all; zero if it does not.
	firstAt time.Time
	// looked is when the set was last looked at; zero if it is to be looked at at once.
	looked time.Time
	// wrote is when slices were last written.
	wrote time.Time
}

// wait returns how long the set is to wait; 0 or less if it is to be looked at now.
func (p *pace) wait(now time.Time, wanted int) time.Duration {
	switch {
	case p.looked.IsZero():
		return 0
	case p.added.IsZero() && p.outdated.IsZero():
		return p.looked.Add(resync).Sub(now)
	}
	n := time.Duration(max(wanted, p.pods))
	settle, gather := min(max(n*settlePerPod, minSettle), maxSettle), min(max(n*gatherPerPod, minGather), maxGather)
	due := p.added.Add(gather)
	if p.listed == p.pods && p.pods+p.ended >= wanted {
		due = p.added
	}
	if late := p.outdated.Add(settle); p.added.IsZero() || !p.outdated.IsZero() && late.Before(due) {
		due = late
	}
	if again := p.wrote.Add(settle); due.Before(again) {
		due = again
	}
	if first := p.firstAt.Add(minSettle); !p.firstAt.IsZero() && first.Before(due) {
		due = first
	}
	return due.Sub(now)
}

// count counts a pod, once more or once less; none if it is nil.
func (p *pace) count(of *pod, n int) {
	switch {
	case of == nil:
	case of.ended:
		p.ended += n
	case of.deleted: // nobody waits for it
	case of.listed():
		p.pods += n
		p.listed += n
	default:
		p.pods += n
	}
}

// paces are those of all sets.
type paces struct {
	mu  sync.Mutex
	all map[cache.ObjectName]*pace
}

func newPaces() *paces { return &paces{all: map[cache.ObjectName]*pace{}} }

// change changes the pace of a set.
func (p *paces) change(key cache.ObjectName, by func(*pace)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.all[key]
	if of == nil {
		of = &pace{}
		p.all[key] = of
	}
	if by(of); of.looked.IsZero() && of.pods+of.ended == 0 {
		delete(p.all, key) // as good as never seen
	}
}

// begin returns the pace of a set and, if it is due, notes that all that waits is being looked at. What happens later waits for the next look.
func (p *paces) begin(key cache.ObjectName, now time.Time, wanted int, force bool) (was pace, wait time.Duration) {
	p.change(key, func(of *pace) {
		was = *of
		if wait = of.wait(now, wanted); force || wait <= 0 {
			wait = 0
			of.added, of.outdated, of.firstAt, of.looked = time.Time{}, time.Time{}, time.Time{}, now
		}
	})
	return was, wait
}

// again has the set looked at once more at once.
func (p *paces) again(key cache.ObjectName) {
	p.change(key, func(of *pace) { of.looked = time.Time{} })
}

// wrote notes when the slices of a set were last written.
func (p *paces) wrote(key cache.ObjectName, now time.Time) {
	p.change(key, func(of *pace) { of.wrote = now })
}
