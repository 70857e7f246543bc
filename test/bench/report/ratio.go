// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"
)

// quantity is a figure, or what is computed of several, or not known.
type quantity struct {
	// value is the median of rounds, if there are any.
	value float64
	// rounds has the value of each round; nil if the value does not come from rounds that belong together.
	rounds []float64
	// timed quantities depend on the machine, so that one round alone does not show how much they vary.
	timed bool
	known bool
	text  string
}

// over divides round by round: what changes on the machine from one round to the next changes both.
func (q quantity) over(other quantity) quantity {
	ratio := q.with(other, "/", func(a, b float64) float64 { return a / b })
	ratio.known = ratio.known && other.value != 0
	return ratio
}

func (q quantity) plus(other quantity) quantity {
	return q.with(other, "+", func(a, b float64) float64 { return a + b })
}

func (q quantity) minus(other quantity) quantity {
	return q.with(other, "-", func(a, b float64) float64 { return a - b })
}

func (q quantity) times(other quantity) quantity {
	return q.with(other, "x", func(a, b float64) float64 { return a * b })
}

func (q quantity) with(other quantity, sign string, compute func(a, b float64) float64) quantity {
	result := quantity{
		value: compute(q.value, other.value), timed: q.timed || other.timed, known: q.known && other.known,
		text: fmt.Sprintf("(%s) %s (%s)", q.text, sign, other.text),
	}
	result.rounds = byRound(q, other, compute)
	if result.rounds != nil {
		result.value = Median(result.rounds)
	}
	return result
}

// byRound computes something for each round. A quantity without rounds, such as a number of Jobs, is the same in all.
// Rounds that one of the two has not are left out: they are the last ones, of a benchmark that was interrupted. The
// result is nil unless all values are finite.
func byRound(a, b quantity, compute func(a, b float64) float64) []float64 {
	n := max(len(a.rounds), len(b.rounds))
	for _, q := range []quantity{a, b} {
		if q.rounds != nil || q.timed {
			n = min(n, len(q.rounds))
		}
	}
	var results []float64
	for i := range n {
		result := compute(a.round(i), b.round(i))
		if math.IsNaN(result) || math.IsInf(result, 0) {
			return nil
		}
		results = append(results, result)
	}
	return results
}

// round returns the value of a round.
func (q quantity) round(i int) float64 {
	if q.rounds == nil {
		return q.value
	}
	return q.rounds[i]
}

// quartersFrom is the number of rounds from which on quartiles show how much values vary: one round that was disturbed
// does not change them much.
const quartersFrom = 4

// Spread returns the range of values of several rounds: from the first to the third quartile of four and more,
// otherwise from the smallest to the largest.
func Spread(values []float64) (low, high float64) {
	if len(values) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) < quartersFrom {
		return sorted[0], sorted[len(sorted)-1]
	}
	return between(sorted, 0.25), between(sorted, 0.75)
}

// between returns the value below which a share of the sorted values is, between two of them where it must be.
func between(sorted []float64, share float64) float64 {
	at := share * float64(len(sorted)-1)
	below := int(at)
	if below+1 == len(sorted) {
		return sorted[below]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}

func (r results) median(scenario, phase, figure string) quantity {
	q := quantity{text: scenario + ": " + phase + ": " + figure}
	s := r[scenario]
	if s == nil {
		return q
	}
	for _, p := range s.Phases {
		if f := p.Figure(figure); p.Name == phase && f != nil {
			q.value, q.known, q.rounds = f.Median, true, f.Values
			q.timed = slices.Contains([]string{UnitSeconds, UnitMillis, UnitRate}, f.Unit)
		}
	}
	return q
}

// size is one of the sizes that a scenario had.
func (r results) size(scenario, name string) quantity {
	q := quantity{text: scenario + ": " + name}
	if s := r[scenario]; s != nil {
		q.value, q.known = float64(s.Sizes[name]), s.Sizes[name] > 0
	}
	return q
}

// highest is the largest value of a figure in all phases of all scenarios.
func (r results) highest(figure string) quantity {
	q := quantity{text: "largest of all phases: " + figure, value: math.Inf(-1)}
	for name, s := range r {
		if isUpstream(name) {
			continue // its sets are stored where the sets of jobset-apiserver are not
		}
		for _, p := range s.Phases {
			if f := p.Figure(figure); f != nil {
				q.value, q.known = max(q.value, f.Max), true
			}
		}
	}
	return q
}
