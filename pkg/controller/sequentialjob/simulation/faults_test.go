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
	sync, caches, lives, users, meddling, time, restarts, late, kueue int
	// failing is the percentage of the ends of children that are failures.
	failing int
}

func randomFaults(d simulation.Dice) faults {
	f := faults{
		interludes: simulation.OneOf(d, 0, 10, 30), sync: simulation.OneOf(d, 6, 12, 20), caches: simulation.OneOf(d, 4, 12, 30),
		lives: simulation.OneOf(d, 10, 25, 40), users: simulation.OneOf(d, 0, 1, 4, 8), meddling: simulation.OneOf(d, 0, 0, 1, 3), time: 3,
		restarts: simulation.OneOf(d, 0, 0, 1), late: 3, kueue: 6, failing: simulation.OneOf(d, 0, 10, 30, 60),
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
		{f.lives, (*env).liveSomeChild},
		{f.caches, (*env).showSome},
		{f.users, (*env).userActs},
		{f.meddling, (*env).meddle},
		{f.kueue, (*env).kueueActs},
		{f.time, (*env).passTime},
		{f.late, (*env).deliverLate},
		{2, func(e *env) { e.collectGarbage() }},
		{f.restarts, func(e *env) { e.process.sender.Dead = true }},
		{f.sync, (*env).sync},
	}
}

// controllers is the number of happenings in which the controller itself acts, or ends.
const controllers = 2

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
		request()
	}
}

// cacheOf is an informer of any type.
type cacheOf interface {
	Behind() int
	Advance()
}

// maxLag is how long a cache lags at most. After 30 s a controller acts on what it sees, by design.
const maxLag = 20 * time.Second

// limitLag shows the caches everything before they have lagged for too long.
func (e *env) limitLag() {
	p, behind := e.process, false
	for _, c := range []cacheOf{&p.sequences, &p.jobs, &p.jobSets} {
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
	c := simulation.OneOf[cacheOf](e.dice, &e.process.sequences, &e.process.jobs, &e.process.jobSets)
	if behind := c.Behind(); behind > 0 {
		for range 1 + e.dice.IntN(behind) {
			c.Advance()
		}
	}
}
