// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// faultProfile is how likely what is in one history. Every history does without some kinds of trouble, so that others show.
type faultProfile struct {
	// These are weights of what happens.
	sync, jobSets, jobs, services, jobLives, users, children, time, restarts, late, duplicates int
	// switching means that a controller that starts may have another feature gate than the one before.
	switching bool
	// failing is the percentage of the ends of Jobs that are failures, ending that of running Jobs that come to an end.
	failing, ending int
}

// randomFaults draws what trouble there is in the history.
func (e *env) randomFaults() {
	d := e.Dice
	e.Interludes = simulation.OneOf(d, 0, 10, 30)
	e.faults = faultProfile{
		sync: simulation.OneOf(d, 6, 12, 20), jobSets: simulation.OneOf(d, 2, 6, 20), jobs: simulation.OneOf(d, 3, 10, 30), services: 3,
		jobLives: simulation.OneOf(d, 10, 25, 40), users: simulation.OneOf(d, 0, 0, 1, 4), children: simulation.OneOf(d, 0, 0, 1, 4), time: 3,
		restarts: simulation.OneOf(d, 0, 0, 1), late: 3, duplicates: simulation.OneOf(d, 0, 1),
		switching: d.Percent(5),
		failing:   simulation.OneOf(d, 0, 20, 50, 90, 90), ending: simulation.OneOf(d, 10, 40, 70),
	}
	e.RandomOutcomes(30)
}

// happenings returns what may happen, the doings of the controller last.
func (e *env) happenings() []simulation.Happening {
	f, p := e.faults, e.process
	return append(e.gangs.happenings(), []simulation.Happening{
		{Weight: f.jobLives, Do: e.liveSomeJob},
		{Weight: f.jobs, Do: func() { e.ShowPart(&p.jobs) }},
		{Weight: f.jobSets, Do: func() { e.ShowPart(&p.jobSets) }},
		{Weight: f.services, Do: func() { e.ShowPart(&p.services) }},
		{Weight: f.services, Do: func() { e.ShowPart(&p.claims) }},
		{Weight: f.users, Do: e.changeSomething},
		{Weight: f.children, Do: e.meddleWithChildren},
		{Weight: f.time, Do: e.passTime},
		{Weight: f.late, Do: func() { e.DeliverLate() }},
		{Weight: f.duplicates, Do: p.enqueue},
		{Weight: 2, Do: func() { e.collectGarbage() }},
		{Weight: f.restarts, Do: e.killIdle},
		{Weight: f.sync, Do: func() { e.sync() }},
	}...)
}

// controllers is the number of happenings in which the controller itself acts, or ends.
const controllers = 2

// step lets something happen.
func (e *env) step() { e.Happen(e.happenings()) }

// interlude lets something happen while the controller is busy.
func (e *env) interlude() {
	all := e.happenings()
	e.Happen(all[:len(all)-controllers])
}

// passTime lets more time pass than a cache lags.
func (e *env) passTime() {
	e.Pass(simulation.OneOf(e.Dice, time.Second, 3*time.Second, 20*time.Second, 40*time.Second))
	e.Note("time passes")
}

func (e *env) killIdle() {
	e.Note("controller is killed between two syncs")
	e.process.sender.Dead = true
}
