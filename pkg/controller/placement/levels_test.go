// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// spread is in how many zones and blocks racks are, and between how many neighbors in index the block changes.
type spread struct{ zones, blocks, changes int }

func (s spread) worse(than spread) bool {
	return slices.Compare([]int{s.zones, s.blocks, s.changes}, []int{than.zones, than.blocks, than.changes}) > 0
}

func (s spread) sum() int { return s.zones + s.blocks + s.changes }

type location struct{ zone, block int }

func spreadOf(at []location) spread {
	var s spread
	zones, blocks := map[int]bool{}, map[location]bool{}
	for i, l := range at {
		zones[l.zone], blocks[l] = true, true
		if i > 0 && at[i-1] != l {
			s.changes++
		}
	}
	s.zones, s.blocks = len(zones), len(blocks)
	return s
}

// bestSpread tries all sets of racks of a size. In the best order of a set, the block changes as often as there are blocks, less one.
func bestSpread(racks []location, size int) spread {
	best := spread{zones: len(racks) + 1}
	for set := range 1 << len(racks) {
		if bits.OnesCount(uint(set)) != size {
			continue
		}
		var at []location
		for i, l := range racks {
			if set&(1<<i) != 0 {
				at = append(at, l)
			}
		}
		s := spreadOf(at)
		s.changes = s.blocks - 1
		if best.worse(s) {
			best = s
		}
	}
	return best
}

// TestLevelsAreCloseToTheOptimum compares with all choices there are. Zones are as few as can be in each case; blocks
// and changes between neighbors may be more, because zones are chosen by their size first.
func TestLevelsAreCloseToTheOptimum(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	const cases = 1_500
	var chosen, optimum, equal int
	for range cases {
		racks := make([]location, 2+dice.IntN(8))
		w := new(world)
		for i := range racks {
			racks[i] = location{dice.IntN(3), dice.IntN(3)}
			w.node(fmt.Sprintf("n%d", i), fmt.Sprintf("rack=r%d,zone=z%d,block=z%d-b%d", i, racks[i].zone, racks[i].zone, racks[i].block), 4)
		}
		size := 1 + dice.IntN(len(racks))
		r := Place(&w.Cluster, nil, w.set("a", size, 1, levels("zone", "block", "rack")).requests, WhenFullWait)[0]
		at := make([]location, 0, size)
		for _, a := range r.Assignments {
			at = append(at, racks[int(a.Domain.String()[1]-'0')])
		}
		got, best := spreadOf(at), bestSpread(racks, size)
		if got.zones != best.zones || got.changes != got.blocks-1 {
			t.Fatalf("got %+v, the best is %+v: %d of %v", got, best, size, racks)
		}
		chosen, optimum = chosen+got.sum(), optimum+best.sum()
		if got == best {
			equal++
		}
	}
	ratio := float64(chosen) / float64(optimum)
	t.Logf("%d of %d are the optimum; zones, blocks and changes together are %.4f of it", equal, cases, ratio)
	if ratio > 1.02 || equal < cases*95/100 {
		t.Errorf("%d of %d are the optimum, and the ratio is %.4f", equal, cases, ratio)
	}
}

// TestNeighborsStayTogetherAfterRestarts has Jobs that keep their racks, and one that has lost its own.
func TestNeighborsStayTogetherAfterRestarts(t *testing.T) {
	w := blocksOf("aaa", "bbb").set("a", 4, 1, levels("block"), previous(0, "r3", 1), previous(1, "r4", 1), previous(2, "r9", 1), previous(3, "r0", 1))
	if got, want := w.place(WhenFullWait), "a: r3 r4 r5 r0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOddLevels has levels that nodes do not have, or do not agree on.
func TestOddLevels(t *testing.T) {
	for name, w := range map[string]*world{
		"no node has the level":    new(world).racks(1, 1).set("a", 2, 1, levels("zone")),
		"nodes of a rack disagree": new(world).node("a", "rack=r0,block=x", 4).node("b", "rack=r0,block=y", 4).node("c", "rack=r1,block=y", 4).set("a", 2, 1, levels("block")),
		"the same level twice":     new(world).racks(1, 1).set("a", 2, 1, levels("block", "block")),
		"more levels than count":   new(world).racks(1, 1).set("a", 2, 1, levels("a", "b", "c", "d", "e", "f")),
		"an empty level":           new(world).racks(1, 1).set("a", 2, 1, levels("")),
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := w.place(WhenFullWait), "a: r0 r1"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestSplitIsAStableSort divides random domains by the blocks of two levels, and compares with sorting them.
func TestSplitIsAStableSort(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 2))
		b := &blocks{of: [][]int32{make([]int32, 1+random.IntN(60)), nil}}
		b.of[1] = slices.Clone(b.of[0])
		for d := range b.of[0] {
			inner := random.Int32N(12)
			b.of[0][d], b.of[1][d] = inner/4, inner
		}
		var domains []int32
		for _, d := range random.Perm(len(b.of[0]))[:1+random.IntN(len(b.of[0]))] {
			domains = append(domains, int32(d))
		}
		for level, of := range b.of {
			sorted := slices.Clone(domains)
			slices.SortStableFunc(sorted, func(x, y int32) int { return cmp.Compare(of[x], of[y]) })
			var want [][]int32
			for i, d := range sorted {
				if i == 0 || of[d] != of[sorted[i-1]] {
					want = append(want, nil)
				}
				want[len(want)-1] = append(want[len(want)-1], d)
			}
			if got := newChooser(b).split(domains, level); !slices.EqualFunc(got, want, slices.Equal[[]int32]) {
				t.Fatalf("seed %d, level %d: %v of blocks %v are divided into %v, want %v", seed, level, domains, of, got, want)
			}
		}
	}
}
