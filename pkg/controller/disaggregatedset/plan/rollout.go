// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// Rollout is what a role of a slice has and should have while its slice is rolled. All numbers count groups, and are 0 or more.
type Rollout struct {
	// Initial is what all former revisions had when the rollout began, Old what they have, and New what the current one has.
	Initial, Old, New int64
	// Target is what the current revision is to have; 0 for a role that was removed.
	Target int64
	// Surge is by how many groups Old and New may exceed Target together, and Unavailable by how many they may fall below it. One of
	// them is above 0.
	Surge, Unavailable int64
}

// Next returns the roles after the next step; false if there is none, because the rollout is complete.
//
// Every rollout has T virtual steps, as many as its slowest role needs. New groups appear in the proportion k/T of
// their targets, where k is one more than what the slowest role has reached, so that no role leads by more than one
// step. Old groups go in the same way. What each step guarantees for every role, in terms of what is asked for:
//
//   - New never falls and stays at or below Target; Old never rises.
//   - Old + New stays at or below Target + max(Surge, 1), or falls. It is above Target + Surge only if Surge is 0 and
//     the last old group is kept because other roles still have some (see spare).
//   - Old + New stays at or above Target - Unavailable in a role that does not grow (Initial >= Target).
//   - A role that neither is new nor may be absent (Unavailable >= Target) keeps an old group, or has a new one from an earlier step.
//   - Old or New changes in some role, so that no state is stuck: each step lowers the sum of Old and of what New lacks.
//
// Old groups above Initial, which someone must have added, go first, and none of this holds for them.
func Next(roles []Rollout) ([]Rollout, bool) {
	steps := virtualSteps(roles)
	full := all(roles, func(r Rollout) bool { return r.New >= r.Target })
	drained := all(roles, func(r Rollout) bool { return r.Old == 0 })
	switch {
	case full && drained:
		return nil, false
	case !all(roles, func(r Rollout) bool { return r.Old <= r.Initial }):
		return with(roles, func(_ int, r *Rollout) { r.Old = min(r.Initial, r.Old) }), true
	case full:
		return with(roles, func(_ int, r *Rollout) { r.Old = 0 }), true
	}
	grown := grow(roles, steps)
	if !same(grown, roles) && all(grown, func(r Rollout) bool { return r.Target == 0 || r.Old+r.New <= r.Target+r.Surge }) {
		return grown, true
	}
	if shrunk := spare(roles, drain(roles, steps)); !same(shrunk, roles) {
		return shrunk, true
	}
	// Neither fits alone: grow, and take old groups away in the same step. The slowest role always grows, see grow.
	forced := with(grown, func(_ int, r *Rollout) {
		r.Old = min(max(r.Target+r.Surge-r.New, 0, r.least()), r.Old)
	})
	return spare(roles, forced), true
}

// virtualSteps returns T: in how many steps the slowest role can be replaced.
func virtualSteps(roles []Rollout) int64 {
	var steps int64
	for _, r := range roles {
		batch := r.Surge
		if batch <= 0 {
			batch = max(1, r.Unavailable)
		}
		steps = max(steps, ceil(max(r.Initial, r.Target), batch))
	}
	return steps
}

// grow returns the roles with the new groups of the next virtual step. Unless all roles have their targets, the one
// that has reached the least grows: what it has is below k*Target/T.
func grow(roles []Rollout, steps int64) []Rollout {
	reached := steps
	for _, r := range roles {
		if r.Target > 0 {
			reached = min(reached, r.New*steps/r.Target)
		}
	}
	k := 1 + reached
	return with(roles, func(_ int, r *Rollout) { r.New = max(r.New, min(r.Target, ceil(k*r.Target, steps))) })
}

// drain returns the roles with the old groups of the next virtual step, and no fewer than must stay available.
func drain(roles []Rollout, steps int64) []Rollout {
	var reached int64
	for _, r := range roles {
		if r.Initial > 0 {
			reached = max(reached, (r.Initial-r.Old)*steps/r.Initial)
		}
	}
	k := 1 + reached
	return with(roles, func(_ int, r *Rollout) {
		next := min(r.Old, max(0, r.Initial-k*r.Initial/steps))
		r.Old = min(r.Old, max(next, r.least()))
	})
}

// least returns how many old groups a role needs beside its new ones to stay available. A role that grows needs none.
func (r Rollout) least() int64 {
	if r.Initial < r.Target {
		return 0
	}
	return max(0, r.Target-r.Unavailable-r.New)
}

// spare returns a step without orphans: old groups of one role are of no use without those of the others. If a step
// would take some roles to 0 and leave others, all go to 0 if what is new suffices, and otherwise those roles keep one.
// A step that would take away the last group of a role that grows keeps one of each too, so that no role stops unless
// its limits allow it.
func spare(before, after []Rollout) []Rollout {
	some, left := false, false
	for _, r := range after {
		if r.Initial > 0 {
			some, left = some || r.Old == 0, left || r.Old > 0
		}
	}
	bare := lastOfGrowing(before)
	if !some || !left && !bare {
		return after
	}
	suffices := !bare && all(before, Rollout.suffices)
	return with(after, func(i int, r *Rollout) {
		switch {
		case r.Initial == 0:
		case suffices:
			r.Old = 0
		case r.Old == 0:
			r.Old = min(1, before[i].Old)
		}
	})
}

// suffices returns whether new groups alone keep a role available. A role that grows needs none.
func (r Rollout) suffices() bool { return r.Initial < r.Target || r.New >= r.Target-r.Unavailable }

// lastOfGrowing returns whether a role that grows has old groups alone. It does not count if a role may be absent altogether.
func lastOfGrowing(roles []Rollout) bool {
	if !all(roles, func(r Rollout) bool { return r.Target == 0 || r.Unavailable < r.Target }) {
		return false
	}
	return !all(roles, func(r Rollout) bool { return r.Initial == 0 || r.Initial >= r.Target || r.New > 0 })
}

func with(roles []Rollout, change func(i int, r *Rollout)) []Rollout {
	next := make([]Rollout, len(roles))
	for i, r := range roles {
		change(i, &r)
		next[i] = r
	}
	return next
}

func all(roles []Rollout, holds func(Rollout) bool) bool {
	for _, r := range roles {
		if !holds(r) {
			return false
		}
	}
	return true
}

func same(a, b []Rollout) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
