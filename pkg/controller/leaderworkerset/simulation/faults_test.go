// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// faults is how likely what is in one history. Every history does without some kinds of trouble, so that others show.
type faults struct {
	// outcomes are how often of a thousand requests end otherwise than carried out.
	outcomes [simulation.Outcomes]int
	// interludes is the percentage of requests before which something else happens.
	interludes int
	// The rest are weights of what happens.
	sync, caches, lives, runs, garbage, users, scaling, meddling, time, outages, rests, restarts, absences, late int
	// failing is the percentage of the steps of running pods that are failures.
	failing int
}

func randomFaults(d simulation.Dice) faults {
	f := faults{
		interludes: simulation.OneOf(d, 0, 10, 30), sync: simulation.OneOf(d, 8, 14), caches: simulation.OneOf(d, 6, 14, 30),
		lives: simulation.OneOf(d, 8, 16), runs: simulation.OneOf(d, 8, 16), garbage: simulation.OneOf(d, 3, 8),
		users: simulation.OneOf(d, 0, 1, 3, 6), meddling: simulation.OneOf(d, 0, 0, 1, 2), time: 3,
		scaling: simulation.OneOf(d, 0, 0, 0, 2), outages: simulation.OneOf(d, 0, 0, 0, 1), absences: simulation.OneOf(d, 0, 0, 1),
		rests:    simulation.OneOf(d, 0, 0, 1, 2),
		restarts: simulation.OneOf(d, 0, 0, 1), late: 3, failing: simulation.OneOf(d, 0, 0, 1, 4),
	}
	if d.Percent(30) {
		return f
	}
	for i := range f.outcomes {
		if simulation.Outcome(i) != simulation.CarriedOut && d.Percent(40) {
			f.outcomes[i] = simulation.OneOf(d, 10, 50, 150)
		}
	}
	return f
}

// happening is something that happens to the environment, as often as its weight says.
type happening struct {
	weight int
	do     func(*env)
}

// happenings returns what may happen, the doings of the controller last.
func (f faults) happenings() []happening {
	return []happening{
		{f.lives, (*env).liveSome},
		{f.runs, (*env).runSome},
		{f.garbage, func(e *env) { e.collectGarbage() }},
		{f.caches, (*env).showSome},
		{f.users, (*env).userActs},
		{f.scaling, (*env).autoscale},
		{f.meddling, (*env).meddle},
		{f.outages, (*env).failServer},
		{f.time, (*env).passTime},
		{f.late, (*env).deliverLate},
		{f.rests, (*env).rest},
		{f.restarts, func(e *env) { e.process.sender.Dead = true }},
		{f.absences, (*env).leave},
		{f.sync, (*env).sync},
	}
}

// controllers is the number of happenings in which the controller itself acts, or ends.
const controllers = 4

// step lets something happen.
func (e *env) step() { e.happen(e.faults.happenings()) }

// interlude lets something happen while the controller is busy.
func (e *env) interlude() {
	if e.dice.Percent(e.faults.interludes) {
		all := e.faults.happenings()
		e.happen(all[:len(all)-controllers])
	}
}

func (e *env) happen(all []happening) {
	total := 0
	for _, h := range all {
		total += h.weight
	}
	if total == 0 {
		return
	}
	n := e.dice.IntN(total)
	for _, h := range all {
		if n -= h.weight; n < 0 {
			e.now = e.now.Add(time.Duration(e.dice.IntN(400)) * time.Millisecond)
			h.do(e)
			e.limitLag()
			return
		}
	}
}

// draw draws what becomes of a request.
func (e *env) draw() simulation.Outcome {
	n := e.dice.IntN(1000)
	for i, share := range e.faults.outcomes {
		if n -= share; n < 0 {
			e.seen["requests in trouble"]++
			e.note("  next request: %s", simulation.Outcome(i))
			return simulation.Outcome(i)
		}
	}
	return simulation.CarriedOut
}

func (e *env) passTime() {
	e.now = e.now.Add(simulation.OneOf(e.dice, time.Second, 3*time.Second, 9*time.Second))
	e.note("time passes")
}

func (e *env) deliverLate() {
	if len(e.late) > 0 {
		e.note("a late request arrives")
		request := e.late[0]
		e.late = e.late[1:]
		observed := e.rules.observed
		e.rules.observed = nil // it was decided on something else
		request()
		e.rules.observed = observed
	}
}

// maxLag is how long a cache lags at most. After 30 s a controller acts on what it sees, by design.
const maxLag = 20 * time.Second

// limitLag shows the caches everything before they have lagged for too long.
func (e *env) limitLag() {
	p, behind := e.process, false
	for _, c := range p.caches() {
		behind = behind || c.Behind() > 0
		for c.Behind() > 0 && e.now.Sub(p.shownAt) > maxLag {
			c.Advance()
		}
	}
	if !behind || e.now.Sub(p.shownAt) > maxLag {
		p.shownAt = e.now
	}
}

// showSome lets a cache see some of what it has not seen.
func (e *env) showSome() {
	c := simulation.OneOf(e.dice, e.process.caches()...)
	if behind := c.Behind(); behind > 0 {
		for range 1 + e.dice.IntN(behind) {
			c.Advance()
		}
	}
}
