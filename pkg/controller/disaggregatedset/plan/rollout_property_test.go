// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestRolloutGuarantees tries random rollouts from regular and from abnormal starts, some of which change on the way. It checks what Next
// promises for every step.
func TestRolloutGuarantees(t *testing.T) {
	for seed := range uint64(30000) {
		random := rand.New(rand.NewPCG(seed, 1))
		roles := randomRoles(random)
		if seed%3 == 1 {
			for i := range roles { // someone scaled children, or removed an annotation
				roles[i].Old, roles[i].New = random.Int64N(15), random.Int64N(15)
			}
		}
		for changes := random.IntN(4); ; changes-- {
			last, err := walk(Next, roles, random, changes > 0)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if changes <= 0 {
				break
			}
			roles = change(last, random)
		}
	}
}

func randomRoles(random *rand.Rand) []Rollout {
	roles := make([]Rollout, 2+random.IntN(4))
	for i := range roles {
		roles[i] = Rollout{Initial: random.Int64N(13), Target: random.Int64N(13)}
		if random.IntN(4) == 0 {
			roles[i].Target = 0
		}
		roles[i].Old = roles[i].Initial
		limit(&roles[i], random)
	}
	return roles
}

func limit(r *Rollout, random *rand.Rand) {
	r.Surge, r.Unavailable = random.Int64N(5), random.Int64N(5)
	if r.Surge == 0 && r.Unavailable == 0 {
		r.Surge = 1
	}
}

// change returns the beginning of a rollout to a further revision, or new targets for the present one.
func change(roles []Rollout, random *rand.Rand) []Rollout {
	further := random.IntN(2) == 0
	return with(roles, func(_ int, r *Rollout) {
		r.Target = random.Int64N(13)
		if further {
			r.Initial, r.Old, r.New = r.Old+r.New, r.Old+r.New, 0
		}
	})
}

// stepper returns the next step, as Next does.
type stepper func(roles []Rollout) ([]Rollout, bool)

// walk takes steps, to the end unless it may stop early, and returns what it has reached.
func walk(step stepper, roles []Rollout, random *rand.Rand, early bool) ([]Rollout, error) {
	start, limit := roles, int64(0)
	for _, r := range roles {
		limit += r.Old + max(0, r.Target-r.New)
	}
	for steps := int64(0); ; steps++ {
		if early && random.IntN(4) == 0 {
			return roles, nil
		}
		next, more := step(roles)
		if !more {
			return roles, rests(start, roles)
		}
		if steps >= limit {
			return nil, fmt.Errorf("more than %d steps from %+v", limit, start)
		}
		if err := stepHolds(roles, next); err != nil {
			return nil, fmt.Errorf("from %+v: step from %s to %s: %w", start, state(roles), state(next), err)
		}
		roles = next
	}
}

func rests(start, end []Rollout) error {
	for i, r := range end {
		if r.New < r.Target || r.Old > 0 {
			return fmt.Errorf("from %+v: role %d is stuck at %s", start, i, state(end))
		}
	}
	return nil
}

// stepHolds returns which promise of Next a step breaks.
func stepHolds(before, after []Rollout) error {
	steps := virtualSteps(before)
	slowest := steps
	outage := false
	for _, r := range before {
		if r.Target > 0 {
			slowest = min(slowest, r.New*steps/r.Target)
			outage = outage || r.Unavailable >= r.Target
		}
	}
	changed := false
	for i, now := range after {
		was := before[i]
		changed = changed || now != was
		switch total := now.Old + now.New; {
		case now.New < was.New || now.New > max(was.New, now.Target) || now.Old > was.Old || now.Old < 0:
			return fmt.Errorf("role %d moves backwards or beyond its target", i)
		case now.New > was.New && now.New > ceil((1+slowest)*now.Target, steps):
			return fmt.Errorf("role %d leads by more than one of %d steps", i, steps)
		case now.Target > 0 && total > was.Old+was.New && total > now.Target+max(now.Surge, 1):
			return fmt.Errorf("role %d exceeds its surge", i)
		case now.Initial >= now.Target && now.Old < was.Old && was.Old <= was.Initial && total < now.Target-now.Unavailable:
			return fmt.Errorf("role %d falls below what must be available", i)
		case !outage && now.Target > 0 && now.Initial > 0 && was.Old <= was.Initial && was.Old+was.New > 0 && now.Old+was.New == 0:
			return fmt.Errorf("role %d has no group that can be ready", i)
		}
	}
	if !changed {
		return fmt.Errorf("nothing changes")
	}
	return oldGroupsHold(before, after, steps)
}

// oldGroupsHold returns what is wrong with how a step takes old groups away.
func oldGroupsHold(before, after []Rollout, steps int64) error {
	if !all(before, func(r Rollout) bool { return r.Old <= r.Initial }) {
		return nil
	}
	left, grows, fastest := false, false, int64(0)
	for i, now := range after {
		left = left || now.Initial > 0 && now.Old > 0
		grows = grows || now.New > before[i].New
		if now.Initial > 0 {
			fastest = max(fastest, (now.Initial-before[i].Old)*steps/now.Initial)
		}
	}
	for i, now := range after {
		was := before[i]
		switch {
		case !left || now.Initial == 0 || now.Old == was.Old:
		case now.Old == 0:
			return fmt.Errorf("role %d loses its last old group while other roles keep their old groups", i)
		case !grows && now.Initial-now.Old > (1+fastest)*now.Initial/steps:
			return fmt.Errorf("old groups of role %d lead by more than one of %d steps", i, steps)
		}
	}
	return nil
}
