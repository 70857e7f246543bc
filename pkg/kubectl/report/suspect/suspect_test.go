// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package suspect_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/report/suspect"
)

// The simulated month.
const (
	users, runs, fleet = 200, 20_000, 500
	// nodesPerRun is how many nodes a run has at most.
	nodesPerRun = 8
	// ordinary and bad are how often a node of a run ends it. Nodes that end fewer than a fifth of their runs are not always found in a month:
	// there is too little to see of those that are used half as often.
	ordinary, bad = 0.002, 0.3
)

// month simulates the failures of a month, and returns how many runs each node has ended by its own fault, and the bad nodes. Users have
// programs that fail more or less often, some of them always, and nodes are used to different degrees.
func month(seed uint64, wrong int) (counts map[string]int, faulty []string) {
	random := rand.New(rand.NewPCG(seed, 1))
	errs := make([]float64, users)
	for u := range errs {
		if errs[u] = 0.1 * random.Float64(); u%20 == 0 {
			errs[u] = 1
		}
	}
	names, isBad := make([]string, fleet), make([]bool, fleet)
	for i := range names {
		names[i] = fmt.Sprintf("node-%03d", i)
	}
	for _, i := range random.Perm(fleet)[:wrong] {
		isBad[i], faulty = true, append(faulty, names[i])
	}
	slices.Sort(faulty)
	counts = map[string]int{}
	for range runs {
		run := simulate(random, errs[random.IntN(users)], names, isBad)
		if run == nil {
			continue
		}
		for node, classes := range suspect.Nodes(run) {
			if counts[node] += 0; classes.Has(suspect.Infrastructure) {
				counts[node]++
			}
		}
	}
	return counts, faulty
}

// simulate returns a run that failed; nil for one that did not.
func simulate(random *rand.Rand, program float64, names []string, isBad []bool) *archivev1alpha1.Run {
	fail := func(node int, reason string) *archivev1alpha1.Run {
		return &archivev1alpha1.Run{Failures: []archivev1alpha1.RunFailure{{Node: names[node], Reason: reason, ExitCode: ptr.To[int32](1)}}}
	}
	used := 1 + random.IntN(nodesPerRun)
	last := 0
	for range used {
		// The last fifth of the fleet is used half as often as the others.
		if last = random.IntN(fleet); last >= fleet*4/5 && random.IntN(2) == 0 {
			last = random.IntN(fleet * 4 / 5)
		}
		rate := ordinary
		if isBad[last] {
			rate = bad
		}
		if random.Float64() < rate {
			return fail(last, "NodeLost")
		}
	}
	if random.Float64() < program {
		return fail(last, "Error")
	}
	return nil
}

// named are the nodes that are likely at fault.
func named(j suspect.Evaluation) (names []string) {
	for name, verdict := range j.Verdicts {
		if verdict.Level == suspect.Likely {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestMonth has 200 months with three bad nodes each, all of which must be named, and no other.
func TestMonth(t *testing.T) {
	for seed := range uint64(200) {
		counts, faulty := month(seed, 3)
		if diff := cmp.Diff(faulty, named(suspect.Evaluate(counts))); diff != "" {
			t.Errorf("seed %d: nodes at fault (-want +got):\n%s", seed, diff)
		}
	}
}

// TestMonthWithoutBadNodes names none.
func TestMonthWithoutBadNodes(t *testing.T) {
	for seed := range uint64(50) {
		counts, _ := month(seed, 0)
		if got := named(suspect.Evaluate(counts)); len(got) > 0 {
			t.Errorf("seed %d: %v are named", seed, got)
		}
	}
}

func TestEvaluate(t *testing.T) {
	// nodes are so many nodes with the number.
	nodes := func(counts map[string]int, n, number int) map[string]int {
		for i := range n {
			counts[fmt.Sprintf("n-%d-%d", number, i)] = number
		}
		return counts
	}
	for name, tc := range map[string]struct {
		counts     map[string]int
		want       []string
		wantMedian float64
	}{
		"no node":                              {counts: nil},
		"few nodes are not compared":           {counts: nodes(nodes(none(), 8, 0), 1, 100), wantMedian: 0},
		"all alike":                            {counts: nodes(none(), 50, 7), wantMedian: 7},
		"no failure at all":                    {counts: nodes(none(), 50, 0)},
		"the first failure of a fleet":         {counts: nodes(nodes(none(), 99, 0), 1, 1)},
		"one bad node":                         {counts: nodes(nodes(none(), 40, 1), 1, 30), want: []string{"n-30-0"}, wantMedian: 1},
		"bad nodes do not hide each other":     {counts: nodes(nodes(none(), 40, 1), 4, 30), want: []string{"n-30-0", "n-30-1", "n-30-2", "n-30-3"}, wantMedian: 1},
		"a fleet whose nodes differ very much": {counts: nodes(nodes(nodes(nodes(none(), 30, 1), 30, 4), 20, 10), 10, 20), wantMedian: 4},
	} {
		t.Run(name, func(t *testing.T) {
			j := suspect.Evaluate(tc.counts)
			if diff := cmp.Diff(tc.want, named(j)); diff != "" || j.Median != tc.wantMedian {
				t.Errorf("median %v, want %v; nodes at fault (-want +got):\n%s", j.Median, tc.wantMedian, diff)
			}
		})
	}
}

func none() map[string]int { return map[string]int{} }

func TestEvaluateSaysHowSure(t *testing.T) {
	counts := none()
	for i := range 40 {
		counts[fmt.Sprintf("n-%d", i)] = 2
	}
	counts["odd"] = 12
	v := suspect.Evaluate(counts).Verdicts
	if v["odd"].Level != suspect.Unclear || v["odd"].Probability <= 0.001 || v["odd"].Probability > 0.05 {
		t.Errorf("odd is evaluated %+v, want unclear", v["odd"])
	}
	if v["n-0"].Level != suspect.None || v["n-0"].Probability != 1 {
		t.Errorf("n-0 is evaluated %+v, want none", v["n-0"])
	}
}

func TestClassOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		exit   bool
		want   suspect.Class
	}{
		"a lost node":                  {"NodeLost", false, suspect.Infrastructure},
		"a lost node with an exit":     {"DeletionByTaintManager", true, suspect.Infrastructure},
		"a node without the device":    {"UnexpectedAdmissionError", false, suspect.Infrastructure},
		"out of memory":                {"OOMKilled", true, suspect.Program},
		"an exit code":                 {"Error", true, suspect.Program},
		"an exit code without a word":  {"", true, suspect.Program},
		"an eviction":                  {"Evicted", false, suspect.Other},
		"a preemption":                 {"PreemptionByScheduler", true, suspect.Other},
		"a Job that took too long":     {"DeadlineExceeded", false, suspect.Other},
		"what nobody has ever thought": {"\x1b[31m", false, suspect.Other},
	} {
		t.Run(name, func(t *testing.T) {
			if got := suspect.ClassOf(tc.reason, tc.exit); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestNodesCountsRunsOnce: a run counts once for a node, and failures of steps that have runs of their own do not count.
func TestNodesCountsRunsOnce(t *testing.T) {
	run := &archivev1alpha1.Run{
		Failures: []archivev1alpha1.RunFailure{
			{Node: "a", Reason: "NodeLost"}, {Node: "a", Reason: "NodeLost"}, {Node: "a", Reason: "Error"}, {Reason: "NodeLost"},
			{Node: "b", Reason: "NodeLost", Child: "train"}, {Node: "c", Reason: "Evicted", Child: "load"},
		},
		Children: []archivev1alpha1.RunChild{{Name: "load", Kind: "Job"}, {Name: "train", Kind: "JobSet"}},
	}
	want := map[string]suspect.Classes{"a": 1<<suspect.Infrastructure | 1<<suspect.Program, "c": 1 << suspect.Other}
	if diff := cmp.Diff(want, suspect.Nodes(run)); diff != "" {
		t.Errorf("classes by node (-want +got):\n%s", diff)
	}
}
