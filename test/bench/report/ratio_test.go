// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRatiosAreThoseOfRounds(t *testing.T) {
	rounds := func(values ...float64) quantity {
		return quantity{value: Median(values), rounds: values, timed: true, known: true}
	}
	size := quantity{value: 4, known: true}
	for name, tc := range map[string]struct {
		is         quantity
		want       float64
		wantRounds []float64
		wantKnown  bool
	}{
		"the median of ratios, not the ratio of medians": {rounds(2, 9, 3).over(rounds(1, 3, 3)), 2, []float64{2, 3, 1}, true},
		"a size is the same in all rounds":               {rounds(4, 8).over(size), 1.5, []float64{1, 2}, true},
		"a size can be divided too":                      {size.over(rounds(2, 4)), 1.5, []float64{2, 1}, true},
		"products":                                       {rounds(1, 2).times(size), 6, []float64{4, 8}, true},
		"the last round is missing":                      {rounds(2, 9, 3).over(rounds(1, 3)), 2.5, []float64{2, 3}, true},
		"rounds of one do not belong together":           {rounds(2, 9, 3).over(quantity{value: 2, timed: true, known: true}), 1.5, nil, true},
		"a round without a time: the ratio of medians":   {rounds(2, 9, 3).over(rounds(0, 3, 3)), 1, nil, true},
		"a divisor of zero is not known":                 {rounds(2).over(rounds(0)), 0, nil, false},
		"sizes":                                          {size.times(size), 16, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.wantRounds, tc.is.rounds); d != "" {
				t.Errorf("rounds (-want +got):\n%s", d)
			}
			if tc.is.known != tc.wantKnown || tc.wantKnown && tc.is.value != tc.want {
				t.Errorf("%v, known: %t, want %v, known: %t", tc.is.value, tc.is.known, tc.want, tc.wantKnown)
			}
		})
	}
}

func TestSpread(t *testing.T) {
	for name, tc := range map[string]struct {
		values    []float64
		low, high float64
	}{
		"nothing":                                {nil, 0, 0},
		"one round":                              {[]float64{7}, 7, 7},
		"three rounds: all of them":              {[]float64{9, 1, 5}, 1, 9},
		"four rounds: quartiles between":         {[]float64{4, 1, 3, 2}, 1.75, 3.25},
		"five rounds: the second and the fourth": {[]float64{100, 1, 4, 3, 2}, 2, 4},
	} {
		t.Run(name, func(t *testing.T) {
			low, high := Spread(tc.values)
			if d := cmp.Diff([]float64{tc.low, tc.high}, []float64{low, high}); d != "" {
				t.Errorf("low, high (-want +got):\n%s", d)
			}
		})
	}
}
