// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// mutant is the package under test, or one that is wrong.
type mutant struct {
	place func(*placement.Cluster, []placement.Assignment, []placement.Request, placement.WhenFull) []placement.Result
	move  func(placement.Pending, time.Time) placement.Move
	// byStage is a host that asks for a place for Jobs when they start.
	byStage bool
	// anywhere is a host that moves Jobs whether there is room or not.
	anywhere bool
}

func real() mutant { return mutant{place: placement.Place, move: placement.DecideMove} }

const (
	histories = 200
	enough    = 1_000
)

func TestHistories(t *testing.T) {
	from, n := uint64(0), uint64(histories)
	if text := os.Getenv("SIMULATION_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		from, n = seed, 1
	}
	if text := os.Getenv("SIMULATION_HISTORIES"); text != "" {
		count, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n = count
	}
	for seed := from; seed < from+n; seed++ {
		if broken := run(seed, real()); broken != "" {
			t.Fatalf("history %d breaks the rule %s", seed, broken)
		}
	}
}

// placing is a placement on other input, or with another result.
func placing(before func(*placement.Cluster, *[]placement.Assignment, []placement.Request), after func([]placement.Result)) mutant {
	m := real()
	m.place = func(c *placement.Cluster, present []placement.Assignment, requests []placement.Request, full placement.WhenFull) []placement.Result {
		copied := placement.Cluster{Nodes: slices.Clone(c.Nodes), Pods: slices.Clone(c.Pods)}
		present, requests = slices.Clone(present), slices.Clone(requests)
		for i := range requests {
			requests[i].Groups = slices.Clone(requests[i].Groups)
			for j := range requests[i].Groups {
				requests[i].Groups[j].Jobs = slices.Clone(requests[i].Groups[j].Jobs)
			}
		}
		if before != nil {
			before(&copied, &present, requests)
		}
		results := placement.Place(&copied, present, requests, full)
		if after != nil {
			after(results)
		}
		return results
	}
	return m
}

func jobs(requests []placement.Request, f func(*placement.Group, *placement.Job)) {
	for i := range requests {
		for j := range requests[i].Groups {
			for k := range requests[i].Groups[j].Jobs {
				f(&requests[i].Groups[j], &requests[i].Groups[j].Jobs[k])
			}
		}
	}
}

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	moving := func(move func(placement.Pending, time.Time) placement.Move) mutant {
		m := real()
		m.move = move
		return m
	}
	blind := func(change func(*placement.Pending)) mutant {
		return moving(func(p placement.Pending, now time.Time) placement.Move {
			change(&p)
			return placement.DecideMove(p, now)
		})
	}
	staged, anywhere := real(), real()
	staged.byStage, anywhere.anywhere = true, true
	for name, test := range map[string]struct {
		mutant   mutant
		wantRule string
	}{
		"assignments that are forgotten": {placing(func(_ *placement.Cluster, present *[]placement.Assignment, _ []placement.Request) { *present = nil }, nil), exclusive},
		"pods that are ignored":          {placing(func(c *placement.Cluster, _ *[]placement.Assignment, _ []placement.Request) { c.Pods = nil }, nil), truthful},
		"priority that always preempts": {placing(func(_ *placement.Cluster, _ *[]placement.Assignment, requests []placement.Request) {
			jobs(requests, func(g *placement.Group, _ *placement.Job) { g.Shape = preempting(g.Shape.Priority()) })
		}, nil), exclusive},
		"sets that share": {placing(func(_ *placement.Cluster, _ *[]placement.Assignment, requests []placement.Request) {
			for i := range requests {
				for j := range requests[i].Groups {
					if j > 0 {
						requests[i].Groups[j].DependsOn = []placement.Dependency{{Complete: true}}
					}
				}
			}
		}, nil), exclusive},
		"the youngest first": {placing(func(_ *placement.Cluster, _ *[]placement.Assignment, requests []placement.Request) {
			for i := range requests {
				requests[i].Created = metav1.NewTime(time.Unix(1<<30, 0).Add(-requests[i].Created.Sub(time.Unix(0, 0))))
			}
		}, nil), first},
		"a restart that holds nothing": {placing(func(_ *placement.Cluster, present *[]placement.Assignment, requests []placement.Request) {
			jobs(requests, func(_ *placement.Group, j *placement.Job) {
				*present = slices.DeleteFunc(*present, func(a placement.Assignment) bool { return a.Job == j.Key })
			})
		}, nil), first},
		"a restart that goes anywhere": {placing(func(_ *placement.Cluster, _ *[]placement.Assignment, requests []placement.Request) {
			jobs(requests, func(_ *placement.Group, j *placement.Job) { j.Previous = placement.Name{} })
		}, nil), same},
		"nodes in the order in which they come": {placing(func(c *placement.Cluster, _ *[]placement.Assignment, _ []placement.Request) {
			c.Nodes = c.Nodes[:max(len(c.Nodes)-1, 1)]
		}, nil), deterministic},
		"half a set": {placing(nil, func(results []placement.Result) {
			for i := range results {
				if n := len(results[i].Assignments); n > 1 {
					results[i].Assignments = results[i].Assignments[:n-1]
				}
			}
		}), whole},
		"room that is not there": {placing(nil, func(results []placement.Result) {
			for i := range results {
				if r := &results[i]; r.Outcome == placement.LacksRoom && r.Action == placement.Assign {
					r.Outcome, r.Shortage = placement.Placed, nil
				}
			}
		}), truthful},
		"domains that are placed by stage":         {staged, finish},
		"Jobs that move at once":                   {moving(func(p placement.Pending, _ time.Time) placement.Move { return placement.Move{Due: !p.Since.IsZero()} }), moved},
		"Jobs that move while others make room":    {blind(func(p *placement.Pending) { p.Nominated = false }), moved},
		"Jobs that move while nodes come":          {blind(func(p *placement.Pending) { p.NodesGained = time.Time{} }), moved},
		"Jobs that move though they were ready":    {blind(func(p *placement.Pending) { p.Ready = false }), moved},
		"Jobs that move as often as they can":      {blind(func(p *placement.Pending) { p.Moves = 0 }), moved},
		"Jobs that move to where there is no room": {anywhere, truthful},
	} {
		t.Run(name, func(t *testing.T) {
			others := map[string]bool{}
			for seed := range uint64(enough) {
				broken := run(seed, test.mutant)
				if strings.HasPrefix(broken, strconv.Quote(test.wantRule)) {
					return
				}
				if broken != "" {
					others[broken[:min(len(broken), 60)]] = true
				}
			}
			t.Errorf("the rule %q was not broken; others were: %v", test.wantRule, others)
		})
	}
}

// TestMoves has pods without a Job take the room of a Job before its own pods are there, and stay. The Job must go
// elsewhere, and its set finish.
func TestMoves(t *testing.T) {
	stay := real()
	stay.move = func(placement.Pending, time.Time) placement.Move { return placement.Move{} }
	for name, test := range map[string]struct {
		mutant   mutant
		finishes bool
	}{
		"Jobs move": {real(), true}, "Jobs never move": {stay, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{dice: rand.New(rand.NewPCG(1, 1)), mutant: test.mutant, full: placement.WhenFullWait, stabilizing: true}
			for _, r := range []int{0, 0, 2, 2, 2} {
				h.addNode(r)
			}
			s := &set{name: "s", topology: rack, cpu: cores, groups: []*group{{name: "g", pods: 2}}}
			j := &job{set: s, key: "s/0"}
			s.groups[0].jobs, h.sets = []*job{j}, []*set{s}
			h.host()
			before := j.assignment.Domain.String()
			h.pods = append(h.pods, &pod{node: h.nodes[0], cpu: cores})
			h.schedule()
			for h.broken == "" && h.now < 2*minutes && !s.finished {
				h.step()
				if now := j.assignment.Domain.String(); now != before && h.now < 5 {
					t.Errorf("the Job moves after %d minutes", h.now)
				}
			}
			if h.broken != "" || s.finished != test.finishes || before != "r0" || s.finished && (j.assignment.Domain.String() != "r2" || j.moves != 1) {
				t.Errorf("broken %q, finished %t, was in %s, is in %s after %d moves", h.broken, s.finished, before, j.assignment.Domain, j.moves)
			}
		})
	}
}

func preempting(priority int32) *placement.Shape {
	s := &set{priority: priority, cpu: 1}
	return s.shape()
}
