// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import "math/rand/v2"

// dice make all choices of one history.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice {
	const stream = 0x6a6f62736574
	return dice{rand.New(rand.NewPCG(seed, stream))}
}

// percent is true in so many cases of a hundred.
func (d dice) percent(p int) bool { return p > 0 && d.IntN(100) < p }

// oneOf returns one of the options, which may be listed more than once.
func oneOf[T any](d dice, options ...T) T { return options[d.IntN(len(options))] }

// some returns a random part of the options, none of them included.
func some(d dice, options ...string) []string {
	var chosen []string
	for _, option := range options {
		if d.percent(40) {
			chosen = append(chosen, option)
		}
	}
	return chosen
}
