// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// faults is how likely what is in one history. Every history does without some kinds of trouble, so that others show.
type faults struct {
	// These are weights of what happens.
	sync, caches, lives, runs, garbage, users, scaling, meddling, time, outages, rests, restarts, absences, late, denials, rivals int
	// failing is the percentage of the steps of running pods that are failures.
	failing int
}

func randomFaults(d simulation.Dice) faults {
	return faults{
		sync: simulation.OneOf(d, 8, 14), caches: simulation.OneOf(d, 6, 14, 30),
		lives: simulation.OneOf(d, 8, 16), runs: simulation.OneOf(d, 8, 16), garbage: simulation.OneOf(d, 3, 8),
		users: simulation.OneOf(d, 0, 1, 3, 6), meddling: simulation.OneOf(d, 0, 0, 1, 2), time: 3,
		scaling: simulation.OneOf(d, 0, 0, 0, 2), outages: simulation.OneOf(d, 0, 0, 0, 1), absences: simulation.OneOf(d, 0, 0, 1),
		rests:   simulation.OneOf(d, 0, 0, 1, 2),
		denials: simulation.OneOf(d, 0, 0, 0, 1), rivals: simulation.OneOf(d, 0, 0, 0, 2),
		restarts: simulation.OneOf(d, 0, 0, 1), late: 3, failing: simulation.OneOf(d, 0, 0, 1, 4),
	}
}

// happenings returns what may happen, the doings of the controller last.
func (e *env) happenings() []simulation.Happening {
	f := e.faults
	return []simulation.Happening{
		{Weight: f.lives, Do: e.liveSome},
		{Weight: f.runs, Do: e.runSome},
		{Weight: f.garbage, Do: func() { e.collectGarbage() }},
		{Weight: f.caches, Do: func() { e.ShowSome(e.process.caches()) }},
		{Weight: f.users, Do: e.userActs},
		{Weight: f.scaling, Do: e.autoscale},
		{Weight: f.meddling, Do: e.meddle},
		{Weight: f.outages, Do: e.failServer},
		{Weight: f.time, Do: e.PassTime},
		{Weight: f.late, Do: e.deliverLate},
		{Weight: f.denials, Do: e.deny},
		{Weight: f.rests, Do: e.rest},
		{Weight: f.rivals, Do: e.rivalActs},
		{Weight: f.restarts, Do: func() { e.process.sender.Dead = true }},
		{Weight: f.absences, Do: e.leave},
		{Weight: f.sync, Do: func() { e.sync() }},
	}
}

// controllers is the number of happenings in which the controller itself acts, or ends.
const controllers = 6

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

func (e *env) deliverLate() {
	observed := e.rules.observed
	e.rules.observed = nil // it was decided on something else
	e.DeliverLate()
	e.rules.observed = observed
}
