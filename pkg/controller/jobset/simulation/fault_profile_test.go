// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import "time"

// outcome is what becomes of a request.
type outcome int

const (
	carriedOut outcome = iota
	// refused requests are answered with an error of the server.
	refused
	// conflicted ones are answered with a conflict although nothing changed.
	conflicted
	// lost ones are carried out, but the answer does not arrive.
	lost
	// belated ones are carried out some time after their sender has given up.
	belated
	// killedBefore and killedAfter kill the controller around the request.
	killedBefore
	killedAfter
	// killedWhile kills it with the request under way.
	killedWhile
	// deposed makes the controller one that has lost its lead without noticing: all that it still does comes late.
	deposed
	outcomes
)

// faultProfile is how likely what is in one history. Every history does without some kinds of trouble, so that others show.
type faultProfile struct {
	// outcomes are how often of a thousand requests end otherwise than carried out.
	outcomes [outcomes]int
	// interludes is the percentage of requests before which something else happens.
	interludes int
	// The rest are weights of actions.
	sync, jobSets, jobs, services, jobLives, users, children, time, restarts, late, duplicates int
	// switching means that a controller that starts may have another feature gate than the one before.
	switching bool
	// failing is the percentage of the ends of Jobs that are failures, ending that of running Jobs that come to an end.
	failing, ending int
}

func randomFaultProfile(d dice) faultProfile {
	m := faultProfile{
		interludes: oneOf(d, 0, 10, 30),
		sync:       oneOf(d, 6, 12, 20), jobSets: oneOf(d, 2, 6, 20), jobs: oneOf(d, 3, 10, 30), services: 3,
		jobLives: oneOf(d, 10, 25, 40), users: oneOf(d, 0, 0, 1, 4), children: oneOf(d, 0, 0, 1, 4), time: 3,
		restarts: oneOf(d, 0, 0, 1), late: 3, duplicates: oneOf(d, 0, 1),
		switching: d.percent(5),
		failing:   oneOf(d, 0, 20, 50, 90, 90), ending: oneOf(d, 10, 40, 70),
	}
	if d.percent(30) {
		return m
	}
	for i := range m.outcomes {
		if outcome(i) != carriedOut && d.percent(40) {
			m.outcomes[i] = oneOf(d, 10, 50, 150)
		}
	}
	return m
}

// action is something that happens to the environment, as often as its weight says.
type action struct {
	weight int
	do     func(*env)
}

// actions returns what happens, the doings of the controller last.
func (m faultProfile) actions() []action {
	return []action{
		{m.jobLives, (*env).liveSomeJob},
		{m.jobs, func(e *env) { e.showSome(&e.process.jobs) }},
		{m.jobSets, func(e *env) { e.showSome(&e.process.jobSets) }},
		{m.services, func(e *env) { e.showSome(&e.process.services) }},
		{m.services, func(e *env) { e.showSome(&e.process.claims) }},
		{m.users, (*env).changeSomething},
		{m.children, (*env).meddleWithChildren},
		{m.time, (*env).passTime},
		{m.late, (*env).deliverLate},
		{m.duplicates, func(e *env) { e.process.enqueue() }},
		{2, (*env).collectGarbage},
		{m.restarts, (*env).killIdle},
		{m.sync, (*env).sync},
	}
}

// controllers is the number of actions in which the controller itself acts, or ends.
const controllers = 2

// step lets something happen.
func (e *env) step() { e.act(e.actions) }

// interlude lets something happen while the controller is busy.
func (e *env) interlude() {
	if e.dice.percent(e.faults.interludes) {
		e.act(e.actions[:len(e.actions)-controllers])
	}
}

func (e *env) act(actions []action) {
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	n := e.dice.IntN(total)
	for _, a := range actions {
		if n -= a.weight; n < 0 {
			e.now = e.now.Add(time.Duration(e.dice.IntN(400)) * time.Millisecond)
			a.do(e)
			return
		}
	}
}

// fate draws what becomes of a request.
func (e *env) fate() outcome {
	n := e.dice.IntN(1000)
	for i, share := range e.faults.outcomes {
		if n -= share; n < 0 {
			return outcome(i)
		}
	}
	return carriedOut
}

func (e *env) passTime() {
	e.now = e.now.Add(oneOf(e.dice, time.Second, 3*time.Second, 20*time.Second, 40*time.Second))
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

func (e *env) killIdle() {
	e.note("controller is killed between two syncs")
	e.process.dead = true
}

// cacheOf is an informer of any type.
type cacheOf interface {
	behind() int
	advance()
}

// showSome lets a cache see some of what it has not seen.
func (e *env) showSome(c cacheOf) {
	if behind := c.behind(); behind > 0 {
		for range 1 + e.dice.IntN(behind) {
			c.advance()
		}
	}
}
