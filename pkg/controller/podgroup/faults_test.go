// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// faults is how likely what is in one history. Every history does without some kinds of trouble, so that others show.
type faults struct {
	// These are weights of what happens.
	sync, caches, creations, lives, deletions, users, groups, jobs, refusals, time, restarts, late int
	// failing is the percentage of the ends of pods that are failures.
	failing int
	// stating is the percentage of pods that state a size, and owned of those that a Job owns.
	stating, owned int
	// legacy is the percentage of pods of the second prefix.
	legacy int
}

func randomFaults(d simulation.Dice) faults {
	return faults{
		sync: simulation.OneOf(d, 8, 14), caches: simulation.OneOf(d, 6, 14, 30), creations: simulation.OneOf(d, 3, 6), lives: simulation.OneOf(d, 8, 16),
		deletions: simulation.OneOf(d, 0, 1, 3), users: simulation.OneOf(d, 0, 1, 3), groups: simulation.OneOf(d, 0, 1, 3), jobs: simulation.OneOf(d, 0, 1, 3),
		refusals: simulation.OneOf(d, 0, 0, 1), time: 3, restarts: simulation.OneOf(d, 0, 0, 1), late: 3,
		failing: simulation.OneOf(d, 0, 10, 50), stating: simulation.OneOf(d, 0, 0, 0, 50), owned: simulation.OneOf(d, 0, 60, 100),
		legacy: simulation.OneOf(d, 0, 0, 30, 100),
	}
}

// happenings returns what may happen, the doings of the controller last.
func (e *env) happenings() []simulation.Happening {
	f := e.faults
	return []simulation.Happening{
		{Weight: f.creations, Do: e.createPod},
		{Weight: f.lives, Do: e.liveSomePod},
		{Weight: f.deletions, Do: e.deleteSomePod},
		{Weight: f.users, Do: e.removeSomeLabel},
		{Weight: f.groups, Do: e.changeGroup},
		{Weight: f.jobs, Do: e.changeJob},
		{Weight: f.refusals, Do: e.changeRefusals},
		{Weight: f.caches, Do: func() { e.ShowSome(e.process.caches()) }},
		{Weight: f.time, Do: e.PassTime},
		{Weight: f.late, Do: func() { e.DeliverLate() }},
		{Weight: 2, Do: func() { e.CollectGarbage() }},
		{Weight: f.restarts, Do: func() { e.process.sender.Dead = true }},
		{Weight: f.sync, Do: func() { e.sync() }},
	}
}

// controllers is the number of happenings in which the controller itself acts, or ends.
const controllers = 2

// step lets something happen.
func (e *env) step() {
	e.Happen(e.happenings())
	e.LimitLag(e.process.caches())
	e.past.look()
}

// interlude lets something happen while the controller is busy.
func (e *env) interlude() {
	all := e.happenings()
	if e.Happen(all[:len(all)-controllers]) {
		e.LimitLag(e.process.caches())
	}
	e.past.look()
}
