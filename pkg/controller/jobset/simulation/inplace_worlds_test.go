// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	sim "github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// inPlaceWorlds are run unless SIMULATION_INPLACE_WORLDS says otherwise.
const inPlaceWorlds = 500

// TestInPlaceWorlds runs histories of sets whose pods restart in place.
func TestInPlaceWorlds(t *testing.T) {
	real := worldMutant{inPlace: true}.complete()
	if seed, given := sim.Number(t, "SIMULATION_INPLACE_WORLD"); given {
		var trace []string
		_, broken := runWorld(seed, real, &trace)
		t.Logf("world %d:\n%s", seed, strings.Join(trace, "\n"))
		if broken != "" {
			t.Fatal(broken)
		}
		return
	}
	n := uint64(inPlaceWorlds)
	if given, ok := sim.Number(t, "SIMULATION_INPLACE_WORLDS"); ok {
		n = given
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	first, begin := firstSeed(t), time.Now()
	got := sim.RunMany(first, int(n), func(seed uint64) (map[string]int, string) { return runRepeated(seed, real) }) //nolint:gosec // a small number
	if got.Broken != "" {
		var trace []string
		_, again := runWorld(got.Seed, real, &trace)
		steps := trace[max(0, len(trace)-shown):]
		t.Fatalf("world %d broke %s\nand again %s\nlast %d of %d steps:\n%s\nto see it all: SIMULATION_INPLACE_WORLD=%d go test -run TestInPlaceWorlds -v",
			got.Seed, got.Broken, again, len(steps), len(trace), strings.Join(steps, "\n"), got.Seed)
	}
	t.Logf("%d worlds from seed %d on in %s", got.Done, first, time.Since(begin).Round(time.Second/10))
	for _, what := range slices.Sorted(maps.Keys(got.Seen)) {
		t.Logf("%10d %s", got.Seen[what], what)
	}
	for _, what := range []string{
		"restarts in place", "attempts that all have reached", "barriers lifted", "restarts of containers", "first causes of restarts in place", "sets that failed",
		"restarts of sets", "kills of the controller", "requests in trouble", "conflicts",
	} {
		if got.Seen[what] == 0 && n >= inPlaceWorlds {
			t.Errorf("the worlds never saw: %s", what)
		}
	}
}

// inPlaceDefects are controllers, and agents, with a defect, and the rule that shows it.
var inPlaceDefects = map[string]struct {
	worldMutant
	wantRule string
	// from is the first world that is tried.
	from uint64
}{
	"pods that are gone still count": {worldMutant{uncounted: func(_ *corev1.Pod, gone bool) bool { return gone }}, countsAreRight, 0},
	"what a pod said first counts for good": {worldMutant{uncounted: func(pod *corev1.Pod, gone bool) bool {
		return !gone && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount > 1
	}}, countsAreRight, 0},
	"changes of pods that are not heard of": {worldMutant{unheard: true}, everySetFinishes, 0},
	"a barrier that one pod holds back in vain": {changing(func(_ *worldProcess, o plan.Observed, out *plan.Plan) {
		eachCount(o, out, func(all plan.InPlace, status *jobsetv1alpha2.JobSetStatus) {
			if int(all.Pods) == podsOfSet(o.JobSet) && all.Highest > 0 {
				status.CurrentInPlaceRestartAttempt = ptr.To(all.Highest)
			}
		})
	}), barrierTogether, 0},
	"a barrier that does not wait for all pods": {changing(func(_ *worldProcess, o plan.Observed, out *plan.Plan) {
		eachCount(o, out, func(all plan.InPlace, status *jobsetv1alpha2.JobSetStatus) {
			if all.Pods > 0 && all.Lowest == all.Highest {
				status.CurrentInPlaceRestartAttempt = ptr.To(all.Highest)
			}
		})
	}), barrierTogether, 0},
	"pods that are not made to restart": {changing(func(_ *worldProcess, o plan.Observed, out *plan.Plan) {
		if out.Status != nil {
			out.Status.PreviousInPlaceRestartAttempt = o.JobSet.Status.PreviousInPlaceRestartAttempt
		}
	}), everySetFinishes, 0},
	"pods that restart once more": {changing(func(_ *worldProcess, o plan.Observed, out *plan.Plan) {
		if previous := o.JobSet.Status.PreviousInPlaceRestartAttempt; out.Status != nil && !ptr.Equal(previous, out.Status.PreviousInPlaceRestartAttempt) {
			*out.Status.PreviousInPlaceRestartAttempt++
		}
	}), restartsOnDemand, 0},
	"no limit": {worldMutant{decide: func(_ *worldProcess, o plan.Observed) plan.Plan {
		js := *o.JobSet
		if js.Spec.FailurePolicy != nil {
			js.Spec.FailurePolicy = js.Spec.FailurePolicy.DeepCopy()
			js.Spec.FailurePolicy.MaxRestarts = 1000
		}
		o.JobSet = &js
		return plan.Decide(o)
	}}, limitHolds, 0},
	"attempts that a restart of the controller loses": {worldMutant{cached: func(p *worldProcess, js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.JobSet {
		if p.synced > 10 || p.seen["starts of the controller"] < 2 {
			return js
		}
		js = js.DeepCopy()
		js.Status.PreviousInPlaceRestartAttempt, js.Status.CurrentInPlaceRestartAttempt = nil, nil
		return js
	}}, attemptsGoUp, 0},
	"Jobs that count as others": {worldMutant{counts: func(jobs map[types.UID]plan.InPlace) {
		for uid := range jobs {
			for _, other := range jobs {
				jobs[uid] = other
			}
		}
	}}, countsAreRight, 0},
	"agents that begin with an old state of the set": {worldMutant{stale: true}, everySetFinishes, 0},
	"any cause": {worldMutant{decide: func(p *worldProcess, o plan.Observed) plan.Plan {
		for _, pod := range p.pods.Objects {
			if len(pod.Status.ContainerStatuses) > 0 && o.FailedInPlace != nil {
				o.FailedInPlace = o.FailedInPlace.DeepCopy()
				o.FailedInPlace.ExitCode = &pod.Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode
			}
		}
		return plan.Decide(o)
	}}, firstCauseIsFirst, 700},
}

// eachCount changes the status that is decided by what was counted of all Jobs.
func eachCount(o plan.Observed, out *plan.Plan, change func(plan.InPlace, *jobsetv1alpha2.JobSetStatus)) {
	var all plan.InPlace
	for _, job := range o.Jobs {
		pods := o.InPlace[job.UID]
		if pods.Pods == 0 {
			continue
		}
		if all.Pods == 0 {
			all.Lowest = pods.Lowest
		}
		all.Pods, all.Lowest, all.Highest = all.Pods+pods.Pods, min(all.Lowest, pods.Lowest), max(all.Highest, pods.Highest)
	}
	if out.Status == nil {
		out.Status = o.JobSet.Status.DeepCopy()
	}
	change(all, out.Status)
}

// TestInPlaceWorldsShowDefects makes sure that worlds can fail, and by which rule.
func TestInPlaceWorldsShowDefects(t *testing.T) {
	for name, test := range inPlaceDefects {
		t.Run(name, func(t *testing.T) {
			others := sets.New[string]()
			test.inPlace = true
			for seed := test.from; seed < test.from+inPlaceWorlds; seed++ {
				_, broken := runWorld(seed, test.complete(), nil)
				if strings.Contains(broken, strconv.Quote(test.wantRule)) {
					t.Logf("world %d shows it", seed)
					return
				}
				if broken != "" {
					others.Insert(broken[:min(len(broken), 200)])
				}
			}
			t.Errorf("the rule %q was not broken; other results: %q", test.wantRule, others.UnsortedList()[:min(len(others), 5)])
		})
	}
}
