// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"k8s.io/utils/clock"
)

// worldClock is the clock of a placer.
type worldClock struct {
	clock.WithDelayedExecution
	p *worldProcess
}

// worldTimer is one that the placer has set.
type worldTimer struct {
	clock.Timer
	at   time.Time
	fire func()
}

func (c worldClock) Now() time.Time                  { return c.p.Now() }
func (c worldClock) Since(t time.Time) time.Duration { return c.p.Now().Sub(t) }

func (c worldClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &worldTimer{at: c.p.Now().Add(d), fire: f}
	c.p.timers = append(c.p.timers, t)
	return t
}

func (t *worldTimer) Stop() bool {
	t.fire = nil
	return true
}

// fire lets timers end whose time is over.
func (p *worldProcess) fire() {
	timers := p.timers
	p.timers = nil
	for _, t := range timers {
		switch {
		case t.fire == nil:
		case t.at.After(p.Now()):
			p.timers = append(p.timers, t)
		default:
			t.fire()
		}
	}
}

// nextDue returns when the controller has something to do; zero for never.
func (p *worldProcess) nextDue() (next time.Time) {
	note := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	note(p.worker.Due())
	for _, t := range p.timers {
		if t.fire != nil {
			note(t.at)
		}
	}
	return next
}
