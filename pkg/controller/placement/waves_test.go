// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"testing"
)

func TestWaves(t *testing.T) {
	ready := func(groups ...int) (out []Dependency) {
		for _, g := range groups {
			out = append(out, Dependency{Group: g})
		}
		return out
	}
	complete := func(groups ...int) (out []Dependency) {
		for _, g := range groups {
			out = append(out, Dependency{Group: g, Complete: true})
		}
		return out
	}
	for name, test := range map[string]struct {
		groups [][]Dependency
		want   []int
	}{
		"none":                      {nil, []int{}},
		"no dependencies":           {[][]Dependency{nil, nil}, []int{0, 0}},
		"ready":                     {[][]Dependency{nil, ready(0), ready(1)}, []int{0, 0, 0}},
		"complete":                  {[][]Dependency{nil, complete(0), complete(1)}, []int{0, 1, 2}},
		"complete, then ready":      {[][]Dependency{nil, complete(0), ready(1)}, []int{0, 1, 1}},
		"ready, then complete":      {[][]Dependency{nil, ready(0), complete(1)}, []int{0, 0, 0}},
		"both complete":             {[][]Dependency{nil, nil, complete(0, 1)}, []int{0, 0, 1}},
		"one of two complete":       {[][]Dependency{nil, nil, complete(0)}, []int{0, 0, 0}},
		"one depends on nothing":    {[][]Dependency{nil, complete(0), nil}, []int{0, 0, 0}},
		"itself and later ones":     {[][]Dependency{complete(0, 1, 7), complete(-1)}, []int{0, 0}},
		"more than a word of them":  {slices.Concat(make([][]Dependency, 70), [][]Dependency{complete(seq(70)...)}), append(make([]int, 70), 1)},
		"more than are looked into": {slices.Concat(make([][]Dependency, 1), slices.Repeat([][]Dependency{complete(0)}, maxOrderedGroups)), make([]int, maxOrderedGroups+1)},
	} {
		t.Run(name, func(t *testing.T) {
			groups := make([]Group, len(test.groups))
			for i := range groups {
				groups[i].DependsOn = test.groups[i]
			}
			if got := wavesOf(groups); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func seq(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}
