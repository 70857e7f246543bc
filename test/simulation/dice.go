// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import "math/rand/v2"

// Dice make all choices of one history.
type Dice struct{ *rand.Rand }

// NewDice returns dice whose choices follow from the seed, and differ from those of other streams.
func NewDice(seed, stream uint64) Dice { return Dice{rand.New(rand.NewPCG(seed, stream))} }

// Percent is true in so many cases of a hundred.
func (d Dice) Percent(p int) bool { return p > 0 && d.IntN(100) < p }

// OneOf returns one of the options, which may be listed more than once.
func OneOf[T any](d Dice, options ...T) T { return options[d.IntN(len(options))] }
