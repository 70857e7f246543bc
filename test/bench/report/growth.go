// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	growth          = "growth"
	phaseOfJobsMark = ": "
)

// GrowthPhase is the name of a part of the life of a set of so many Jobs.
func GrowthPhase(jobs int, part string) string { return strconv.Itoa(jobs) + phaseOfJobsMark + part }

// growthFigures are the figures whose growth with the number of Jobs is shown.
var growthFigures = []string{"wall for each Job", "CPU of all programs for each Job", "CPU of jobset-controller for each Job"}

// growthSizes returns the numbers of Jobs, ascending, that a part of the life of a set was measured with.
func (s *Scenario) growthSizes(part string) (sizes []int) {
	for _, p := range s.Phases {
		number, name, _ := strings.Cut(p.Name, phaseOfJobsMark)
		if jobs, err := strconv.Atoi(number); err == nil && name == part {
			sizes = append(sizes, jobs)
		}
	}
	slices.Sort(sizes)
	return sizes
}

// growthParts returns the parts of the life of a set that were measured with several numbers of Jobs, in their order.
func (s *Scenario) growthParts() (parts []string) {
	for _, p := range s.Phases {
		_, part, _ := strings.Cut(p.Name, phaseOfJobsMark)
		if !slices.Contains(parts, part) && len(s.growthSizes(part)) > 1 {
			parts = append(parts, part)
		}
	}
	return parts
}

// growths returns the results of growth, with the sets of each variant, in the order of their names.
func (r results) growths() (scenarios []*Scenario) {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if scenario, _, _ := strings.Cut(name, variantMark); scenario == growth {
			scenarios = append(scenarios, r[name])
		}
	}
	return scenarios
}

// addGrowth adds what a Job costs in larger sets beside what it costs in the smallest: 1 is linear.
func (r results) addGrowth(add func(figure, unit string, limit float64, q quantity)) {
	for _, s := range r.growths() {
		for _, part := range s.growthParts() {
			sizes := s.growthSizes(part)
			for _, figure := range growthFigures {
				of := func(jobs int) quantity { return r.median(s.Name, GrowthPhase(jobs, part), figure) }
				for _, jobs := range sizes[1:] {
					add(fmt.Sprintf("%s %s: %s, of %d / of %d (1 is linear)", s.Name, part, figure, jobs, sizes[0]), "", noLimit, of(jobs).over(of(sizes[0])))
				}
			}
		}
	}
}
