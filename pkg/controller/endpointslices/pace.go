// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Addresses of new pods gather for gatherPerPod for each pod of the set, from minGather to maxGather, unless the last
// pod has its address. Between two writes of new addresses are intervalPerPod, from minInterval to maxInterval. The
// address of the pod that others look for waits for minInterval, whatever the rest.
const (
	gatherPerPod, minGather, maxGather       = 10 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second
	intervalPerPod, minInterval, maxInterval = 2 * time.Millisecond, 100 * time.Millisecond, time.Second
	// removalDelay is how long an outdated address stays in its slice, and removalDelayAtEnd how long it stays while
	// the garbage collector is about to delete the slice with the set.
	removalDelay, removalDelayAtEnd = time.Second, 10 * time.Second
	// resync is after which time a set is looked at if nothing waits.
	resync = 10 * time.Minute
)

// situation is what a pace does not know itself.
type situation struct {
	// pods is the number of pods that the set runs at the same time.
	pods int
	// ends means that the set is gone or about to be.
	ends bool
	// force has the set looked at now.
	force bool
}

// pace is what decides when the slices of a set are written.
type pace struct {
	// pods is the number of pods that have not ended and are not deleted, and listed the number of these with an address.
	// ended is the number of pods that have ended.
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
func (p *pace) wait(now time.Time, of situation) time.Duration {
	switch {
	case p.looked.IsZero():
		return 0
	case !p.added.IsZero() || !p.outdated.IsZero():
		return p.due(of).Sub(now)
	}
	return p.looked.Add(resync).Sub(now)
}

// due returns when what waits is to be written.
func (p *pace) due(of situation) (due time.Time) {
	if !p.outdated.IsZero() {
		due = p.outdated.Add(removalDelay)
		if of.ends {
			due = p.outdated.Add(removalDelayAtEnd)
		}
	}
	if p.added.IsZero() {
		return due
	}
	n := time.Duration(max(of.pods, p.pods))
	interval, gather := min(max(n*intervalPerPod, minInterval), maxInterval), min(max(n*gatherPerPod, minGather), maxGather)
	added := p.added.Add(gather)
	if p.listed == p.pods && p.pods+p.ended >= of.pods {
		added = p.added
	}
	if again := p.wrote.Add(interval); added.Before(again) {
		added = again
	}
	if first := p.firstAt.Add(minInterval); !p.firstAt.IsZero() && first.Before(added) {
		added = first
	}
	if due.IsZero() || added.Before(due) {
		return added
	}
	return due
}

// drop forgets what waits.
func (p *pace) drop() { p.added, p.outdated, p.firstAt = time.Time{}, time.Time{}, time.Time{} }

// count counts a pod, once more or once less; none if it is nil.
func (p *pace) count(of *pod, n int) {
	switch {
	case of == nil:
	case of.ended:
		p.ended += n
	case of.deleted: // its address is not waited for
	case of.listed():
		p.pods += n
		p.listed += n
	default:
		p.pods += n
	}
}

// paces are the paces of all sets.
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

// begin returns the pace of a set and, if it is due, notes that all that waits is being looked at. What happens later
// waits for the next look.
func (p *paces) begin(key cache.ObjectName, now time.Time, in situation) (was pace, wait time.Duration) {
	p.change(key, func(of *pace) {
		was = *of
		if wait = of.wait(now, in); in.force || wait <= 0 {
			wait = 0
			of.drop()
			of.looked = now
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
