// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// faults is how likely what is in one history. Every history does without some kinds of trouble, so that others show.
type faults struct {
	// These are weights of what happens.
	sync, caches, lives, users, meddling, time, restarts, late, kueue, rivals int
	// failing is the percentage of the ends of children that are failures.
	failing int
}

func randomFaults(d simulation.Dice) faults {
	return faults{
		sync: simulation.OneOf(d, 6, 12, 20), caches: simulation.OneOf(d, 4, 12, 30),
		lives: simulation.OneOf(d, 10, 25, 40), users: simulation.OneOf(d, 0, 1, 4, 8), meddling: simulation.OneOf(d, 0, 1, 3, 6), time: 3,
		restarts: simulation.OneOf(d, 0, 0, 1), late: 3, kueue: 6, rivals: simulation.OneOf(d, 0, 0, 0, 2), failing: simulation.OneOf(d, 0, 10, 30, 60),
	}
}

// happenings returns what may happen, the doings of the controller last.
func (e *env) happenings() []simulation.Happening {
	f := e.faults
	return []simulation.Happening{
		{Weight: f.lives, Do: e.liveSomeChild},
		{Weight: f.caches, Do: func() { e.ShowSome(e.process.caches()) }},
		{Weight: f.users, Do: e.userActs},
		{Weight: f.meddling, Do: e.meddle},
		{Weight: f.kueue, Do: e.kueueActs},
		{Weight: f.time, Do: e.PassTime},
		{Weight: f.late, Do: func() { e.DeliverLate() }},
		{Weight: 2, Do: func() { e.collectGarbage() }},
		{Weight: 8, Do: func() { e.podsAct(false) }},
		{Weight: f.rivals, Do: e.rivalActs},
		{Weight: f.restarts, Do: func() { e.process.sender.Dead = true }},
		{Weight: f.sync, Do: func() { e.sync() }},
	}
}

// controllers is the number of happenings in which the controller itself acts, or ends.
const controllers = 3

// step lets something happen.
func (e *env) step() {
	e.Happen(e.happenings())
	e.LimitLag(e.process.caches())
}

// interlude lets something happen while the controller is busy.
func (e *env) interlude() {
	all := e.happenings()
	if e.Happen(all[:len(all)-controllers]) {
		e.LimitLag(e.process.caches())
	}
}
