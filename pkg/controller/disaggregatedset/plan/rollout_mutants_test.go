// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// each calls a function with all rollouts of so many roles with up to so many groups, and limits up to the bound, until
// it returns an error.
func each(roles int, groups, limit int64, do func([]Rollout) error) error {
	var one []Rollout
	for initial := range groups + 1 {
		for target := range groups + 1 {
			for surge := range limit + 1 {
				for unavailable := range limit + 1 {
					if surge+unavailable > 0 {
						one = append(one, Rollout{Initial: initial, Old: initial, Target: target, Surge: surge, Unavailable: unavailable})
					}
				}
			}
		}
	}
	all, chosen := make([]Rollout, roles), make([]int, roles)
	for {
		for i, c := range chosen {
			all[i] = one[c]
		}
		if err := do(all); err != nil {
			return err
		}
		last := roles - 1
		for last >= 0 && chosen[last] == len(one)-1 {
			chosen[last] = 0
			last--
		}
		if last < 0 {
			return nil
		}
		chosen[last]++
	}
}

// small returns what is wrong with a stepper in any rollout of two roles with up to five groups, of three with up to
// three, or of four with one.
func small(step stepper) error {
	for _, size := range []struct {
		roles         int
		groups, limit int64
	}{{2, 5, 2}, {3, 3, 1}, {4, 1, 1}} {
		err := each(size.roles, size.groups, size.limit, func(roles []Rollout) error {
			_, err := walk(step, roles, nil, false)
			return err
		})
		if err != nil {
			return fmt.Errorf("%d roles: %w", size.roles, err)
		}
	}
	return nil
}

// large returns what is wrong with a stepper in random rollouts of 2, 3 and 4 roles with up to so many groups.
func large(step stepper, rollouts uint64, groups int64) error {
	for seed := range rollouts {
		random := rand.New(rand.NewPCG(seed, 4))
		roles := make([]Rollout, 2+seed%3)
		for i := range roles {
			roles[i] = Rollout{Initial: random.Int64N(groups + 1), Target: random.Int64N(groups + 1)}
			roles[i].Old = roles[i].Initial
			share := 1 + max(roles[i].Initial, roles[i].Target)/4
			roles[i].Surge, roles[i].Unavailable = random.Int64N(share+1), random.Int64N(share+1)
			if roles[i].Surge+roles[i].Unavailable == 0 {
				roles[i].Surge = 1
			}
		}
		if _, err := walk(step, roles, nil, false); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return nil
}

// TestEverySmallRollout tries all small rollouts: each state that one can reach has a next step, up to the end.
func TestEverySmallRollout(t *testing.T) {
	if err := small(Next); err != nil {
		t.Error(err)
	}
}

func TestLargeRollouts(t *testing.T) {
	if err := large(Next, 600, 400); err != nil {
		t.Error(err)
	}
}

// altered changes the steps of Next.
func altered(change func(before, after []Rollout) []Rollout) stepper {
	return func(roles []Rollout) ([]Rollout, bool) {
		after, more := Next(roles)
		if !more {
			return nil, false
		}
		return change(roles, after), true
	}
}

// Each of these has a defect that the rules must find, in small rollouts or in large ones.
func TestRulesFindDefects(t *testing.T) {
	mutants := map[string]stepper{
		"a role takes all its steps at once": altered(func(before, after []Rollout) []Rollout {
			return with(after, func(i int, r *Rollout) {
				if r.New > before[i].New {
					r.New = r.Target
				}
			})
		}),
		"one group too many": altered(func(before, after []Rollout) []Rollout {
			return with(after, func(i int, r *Rollout) {
				if r.New > before[i].New && r.New < r.Target {
					r.New++
				}
			})
		}),
		"surge is ignored": func(roles []Rollout) ([]Rollout, bool) {
			if grown := grow(roles, max(1, virtualSteps(roles))); !same(grown, roles) {
				return grown, true
			}
			return Next(roles)
		},
		"availability is ignored": altered(func(before, after []Rollout) []Rollout {
			return with(after, func(i int, r *Rollout) {
				if r.Old < before[i].Old {
					r.Old = max(0, r.Old-1)
				}
			})
		}),
		"old groups go at once": altered(func(before, after []Rollout) []Rollout {
			return with(after, func(i int, r *Rollout) {
				if r.Old < before[i].Old {
					r.Old = 0
				}
			})
		}),
		"orphans stay": func(roles []Rollout) ([]Rollout, bool) {
			after, more := Next(roles)
			if more && same(with(after, func(i int, r *Rollout) { r.Old = roles[i].Old }), roles) && !all(after, func(r Rollout) bool { return r.New >= r.Target }) {
				return drain(roles, virtualSteps(roles)), true
			}
			return after, more
		},
		"no step grows and drains": altered(func(before, after []Rollout) []Rollout {
			grown := same(with(after, func(i int, r *Rollout) { r.Old = before[i].Old }), after)
			drained := same(with(after, func(i int, r *Rollout) { r.New = before[i].New }), after)
			if !grown && !drained {
				return before
			}
			return after
		}),
		"the end comes before old groups are gone": func(roles []Rollout) ([]Rollout, bool) {
			if all(roles, func(r Rollout) bool { return r.New >= r.Target }) {
				return nil, false
			}
			return Next(roles)
		},
		"the last role never grows": altered(func(before, after []Rollout) []Rollout {
			return with(after, func(i int, r *Rollout) {
				if i == len(after)-1 {
					r.New = before[i].New
				}
			})
		}),
		"new groups go again": altered(func(before, after []Rollout) []Rollout {
			return with(after, func(i int, r *Rollout) {
				if r.Old < before[i].Old {
					r.New = max(0, r.New-1)
				}
			})
		}),
		"old groups come back": altered(func(before, after []Rollout) []Rollout {
			return with(after, func(i int, r *Rollout) {
				if r.New > before[i].New && r.Old > 0 {
					r.Old++
				}
			})
		}),
	}
	for name, step := range mutants {
		t.Run(name, func(t *testing.T) {
			if small(step) == nil && large(step, 60, 40) == nil {
				t.Error("no rule finds it")
			}
		})
	}
}
