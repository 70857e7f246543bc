// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"slices"
	"sync"
)

// Line shares units among callers, such as turns or bytes of memory. While there are too few, callers wait: the first one by the order is
// the next one, and of equal ones the one that came first. While it waits for many units, later ones get none.
type Line[C any] struct {
	// before returns whether a caller comes before another one. It is asked each time when units may be given.
	before func(a, b C) bool
	// given, if it is set, is called when a caller gets units, and with a negative number when it gives units back.
	given func(caller C, units int64)

	mu      sync.Mutex
	free    int64
	waiting []*Claim[C]
}

// Claim is a caller that waits for units.
type Claim[C any] struct {
	line   *Line[C]
	caller C
	units  int64
	// comes receives true when the caller has its units, and false when it gives way.
	comes chan bool
}

// NewLine returns a line with units that are free.
func NewLine[C any](free int64, before func(a, b C) bool, given func(caller C, units int64)) *Line[C] {
	return &Line[C]{free: free, before: before, given: given}
}

// Enter claims units, which may be given at once.
func (l *Line[C]) Enter(caller C, units int64) *Claim[C] {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Claim[C]{line: l, caller: caller, units: units, comes: make(chan bool, 1)}
	l.waiting = append(l.waiting, c)
	l.give()
	return c
}

// Wait returns whether the caller has its units. It has none if it gave way, or if the context ended before.
func (c *Claim[C]) Wait(ctx context.Context) bool {
	select {
	case has := <-c.comes:
		return has
	case <-ctx.Done():
	}
	c.line.mu.Lock()
	defer c.line.mu.Unlock()
	at := slices.Index(c.line.waiting, c)
	if at < 0 {
		return <-c.comes // it came at the same moment
	}
	c.line.waiting = slices.Delete(c.line.waiting, at, at+1)
	c.line.give()
	return false
}

// Release gives the units of a caller back.
func (l *Line[C]) Release(caller C, units int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free += units
	if l.given != nil {
		l.given(caller, -units)
	}
	l.give()
}

// Add adds units that no caller had, or takes some away, within bounds.
func (l *Line[C]) Add(units, least, most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = min(max(l.free+units, least), most)
	l.give()
}

// Free returns how many units are free.
func (l *Line[C]) Free() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.free
}

// Len returns how many callers wait.
func (l *Line[C]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// GiveWay makes one of the callers that wait give way, and returns whether one does. The function gets them in the order in which they
// came. It returns which one gives way; -1 for none.
func (l *Line[C]) GiveWay(which func(waiting []C) int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	callers := make([]C, len(l.waiting))
	for i, c := range l.waiting {
		callers[i] = c.caller
	}
	at := which(callers)
	if at < 0 {
		return false
	}
	l.waiting[at].comes <- false
	l.waiting = slices.Delete(l.waiting, at, at+1)
	l.give()
	return true
}

// give gives units to the next callers, as long as there are enough.
func (l *Line[C]) give() {
	for len(l.waiting) > 0 {
		next := 0
		for i, c := range l.waiting {
			if l.before(c.caller, l.waiting[next].caller) {
				next = i
			}
		}
		c := l.waiting[next]
		if c.units > l.free {
			return
		}
		l.free -= c.units
		if l.given != nil {
			l.given(c.caller, c.units)
		}
		l.waiting = slices.Delete(l.waiting, next, next+1)
		c.comes <- true
	}
}
