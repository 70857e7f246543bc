// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suspect finds nodes that end more runs than chance explains.
//
// What is counted are first causes: for each run, the nodes on which one of its attempts failed first because of the node. A program that
// fails by itself says nothing about its node, so its failures are counted apart and not evaluated. One run counts once for a node, however
// often it was restarted there.
//
// How many pods each node has run is not known. So the number of a node is compared with those of the other nodes that are seen in the
// answer. Their numbers are taken to spread like a negative binomial distribution, whose mean and spread come from the nodes that are not
// suspected: nodes are used to different degrees, which a Poisson distribution does not allow for. The probability of the number of a node,
// or a higher one, is multiplied by the number of nodes (Bonferroni), because the highest of many numbers is high by chance alone. Nodes
// without any failure are not seen. That makes the mean too high, and the evaluation careful.
package suspect

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Level is how sure it is that a node is at fault.
type Level string

// The levels. None means that chance explains the number.
const (
	None    Level = ""
	Unclear Level = "unclear"
	Likely  Level = "likely"
)

const (
	// Likely and Unclear begin at these probabilities, after the correction for many nodes.
	likelyAt, unclearAt = 0.001, 0.05
	// leastNodes is how many nodes a comparison needs.
	leastNodes = 10
	// trimmed is the share of the nodes with the highest numbers that is left out of the first estimate, so that bad nodes do not hide
	// themselves by raising what is expected.
	trimmed = 0.1
	// leastSpread is the square of the variation between nodes that is always allowed for: about 30% of the mean.
	leastSpread = 0.1
	// rounds bounds the estimates that follow each other.
	rounds = 20
)

// Verdict is what is thought of a node.
type Verdict struct {
	// Probability is how likely the number of the node is by chance, corrected for the number of nodes; at most 1.
	Probability float64
	// Level is how sure it is that the node is at fault.
	Level Level
}

// Evaluation is the comparison of nodes.
type Evaluation struct {
	// Verdicts are about each node.
	Verdicts map[string]Verdict
	// Enough means that there are enough nodes to compare. Without that, no node is suspected.
	Enough bool
	// Median is the median of the numbers, and Expected the mean of the nodes that are not suspected.
	Median, Expected float64
}

// Evaluate compares the numbers of nodes.
func Evaluate(counts map[string]int) Evaluation {
	j := Evaluation{Verdicts: make(map[string]Verdict, len(counts)), Enough: len(counts) >= leastNodes}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[a]-counts[b], cmp.Compare(a, b)) })
	numbers := make([]int, 0, len(names))
	for _, name := range names {
		numbers = append(numbers, counts[name])
	}
	j.Median = median(numbers)
	if !j.Enough {
		for _, name := range names {
			j.Verdicts[name] = Verdict{Probability: 1}
		}
		return j
	}
	model, probabilities := complete(numbers)
	j.Expected = model.mean
	for i, name := range names {
		j.Verdicts[name] = Verdict{Probability: probabilities[i], Level: levelOf(probabilities[i])}
	}
	return j
}

func levelOf(probability float64) Level {
	switch {
	case probability <= likelyAt:
		return Likely
	case probability <= unclearAt:
		return Unclear
	}
	return None
}

// complete estimates the model without the suspected nodes, until they no longer change. The numbers are sorted, so that the suspected ones
// are the last.
func complete(numbers []int) (m model, probabilities []float64) {
	ordinary := len(numbers) - int(math.Ceil(trimmed*float64(len(numbers))))
	for range rounds {
		m = fit(numbers[:ordinary])
		probabilities = m.evaluate(numbers)
		next := len(numbers)
		for next > 1 && probabilities[next-1] <= likelyAt {
			next--
		}
		if next == ordinary {
			break
		}
		ordinary = next
	}
	return m, probabilities
}

// model is a negative binomial distribution with the mean, and the variance mean + spread × mean².
type model struct{ mean, spread float64 }

// fit estimates the model of sorted numbers. One failure is added to all of them, so that the first failure of a fleet is no proof.
func fit(numbers []int) model {
	n := float64(len(numbers))
	sum := 0.0
	for _, x := range numbers {
		sum += float64(x)
	}
	m := model{mean: (sum + 1) / n, spread: leastSpread}
	if len(numbers) < 2 {
		return m
	}
	squares := 0.0
	for _, x := range numbers {
		squares += (float64(x) - sum/n) * (float64(x) - sum/n)
	}
	m.spread = max(leastSpread, (squares/(n-1)-m.mean)/(m.mean*m.mean))
	return m
}

// evaluate returns the corrected probability of each of the sorted numbers. Equal numbers are computed once.
func (m model) evaluate(numbers []int) []float64 {
	out := make([]float64, len(numbers))
	for i, x := range numbers {
		if i > 0 && numbers[i-1] == x {
			out[i] = out[i-1]
			continue
		}
		out[i] = min(1, m.tail(x)*float64(len(numbers)))
	}
	return out
}

// tail is the probability of a number or a higher one.
func (m model) tail(x int) float64 {
	if float64(x) <= m.mean {
		return 1
	}
	r := 1 / m.spread
	q := m.mean / (r + m.mean)
	k := float64(x)
	first, _ := math.Lgamma(k + r)
	second, _ := math.Lgamma(k + 1)
	third, _ := math.Lgamma(r)
	term := math.Exp(first - second - third + r*math.Log(1-q) + k*math.Log(q))
	sum := 0.0
	// Above the mean, terms become smaller, at last by the factor q.
	for range mostTerms {
		sum += term
		term *= (k + r) / (k + 1) * q
		if k++; term <= sum*1e-12 {
			break
		}
	}
	return min(1, sum)
}

// mostTerms bounds the sum. It is reached only by numbers near a very high mean, whose tail is nowhere near the levels.
const mostTerms = 100_000

func median(sorted []int) float64 {
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return float64(sorted[n/2])
	}
	return float64(sorted[n/2-1]+sorted[n/2]) / 2
}
