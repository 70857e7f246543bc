// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// inPlaceWorlds are histories of sets whose pods restart in place.
var inPlaceWorlds = simulation.Histories[worldMutant]{
	Run: func(seed uint64, m worldMutant, trace *[]string) (map[string]int, string) {
		m.inPlace = true
		return runRepeated(seed, m, trace)
	},
	Number: 500, Long: 1_500, Decisions: "decisions", One: "SIMULATION_INPLACE_WORLD", Many: "SIMULATION_INPLACE_WORLDS",
	Wanted: []string{
		"restarts in place", "attempts that all have reached", "barriers lifted", "restarts of containers", "first causes of restarts in place", "sets that failed",
		"restarts of sets", "kills of the controller", "requests in trouble", "conflicts", "caches of standbys that lag",
	},
}

// TestInPlaceWorlds runs histories of sets whose pods restart in place.
func TestInPlaceWorlds(t *testing.T) { inPlaceWorlds.Test(t) }

// inPlaceDefects are controllers, and agents, with a defect, and the rule that shows it.
var inPlaceDefects = map[string]simulation.Defect[worldMutant]{
	"pods that are gone still count": {Mutant: worldMutant{uncounted: func(_ *corev1.Pod, gone bool) bool { return gone }}, Rules: []string{countsAreRight}},
	"what a pod said first counts for good": {Mutant: worldMutant{uncounted: func(pod *corev1.Pod, gone bool) bool {
		return !gone && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount > 1
	}}, Rules: []string{countsAreRight}},
	"changes of pods that are not heard of": {Mutant: worldMutant{unheard: true}, Rules: []string{everySetFinishes}},
	"a barrier that one pod holds back in vain": {Mutant: changing(func(_ *worldProcess, o plan.Observed, out *plan.Plan) {
		eachCount(o, out, func(all planinplace.State, status *jobsetv1alpha2.JobSetStatus) {
			if int(all.Pods) == podsOfSet(o.JobSet) && all.Highest > 0 {
				status.CurrentInPlaceRestartAttempt = ptr.To(all.Highest)
			}
		})
	}), Rules: []string{barrierTogether}},
	"a barrier that does not wait for all pods": {Mutant: changing(func(_ *worldProcess, o plan.Observed, out *plan.Plan) {
		eachCount(o, out, func(all planinplace.State, status *jobsetv1alpha2.JobSetStatus) {
			if all.Pods > 0 && all.Lowest == all.Highest {
				status.CurrentInPlaceRestartAttempt = ptr.To(all.Highest)
			}
		})
	}), Rules: []string{barrierTogether}},
	"pods that are not made to restart": {Mutant: changing(func(_ *worldProcess, o plan.Observed, out *plan.Plan) {
		if out.Status != nil {
			out.Status.PreviousInPlaceRestartAttempt = o.JobSet.Status.PreviousInPlaceRestartAttempt
		}
	}), Rules: []string{everySetFinishes}},
	"pods that restart once more": {Mutant: changing(func(_ *worldProcess, o plan.Observed, out *plan.Plan) {
		if previous := o.JobSet.Status.PreviousInPlaceRestartAttempt; out.Status != nil && !ptr.Equal(previous, out.Status.PreviousInPlaceRestartAttempt) {
			*out.Status.PreviousInPlaceRestartAttempt++
		}
	}), Rules: []string{restartsOnDemand}},
	"no limit": {Mutant: worldMutant{decide: func(_ *worldProcess, o plan.Observed) plan.Plan {
		js := *o.JobSet
		if js.Spec.FailurePolicy != nil {
			js.Spec.FailurePolicy = js.Spec.FailurePolicy.DeepCopy()
			js.Spec.FailurePolicy.MaxRestarts = 1000
		}
		o.JobSet = &js
		return plan.Decide(o)
	}}, Rules: []string{limitHolds}},
	"attempts that a restart of the controller loses": {Mutant: worldMutant{cached: func(p *worldProcess, js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.JobSet {
		if p.synced > 10 || p.Seen["starts of the controller"] < 2 {
			return js
		}
		js = js.DeepCopy()
		js.Status.PreviousInPlaceRestartAttempt, js.Status.CurrentInPlaceRestartAttempt = nil, nil
		return js
	}}, Rules: []string{attemptsGoUp}},
	"attempts that go back while a cache of pods lags": {Mutant: changing(func(_ *worldProcess, o plan.Observed, out *plan.Plan) {
		eachCount(o, out, func(all planinplace.State, status *jobsetv1alpha2.JobSetStatus) {
			if int(all.Pods) == podsOfSet(o.JobSet) && all.Lowest == all.Highest {
				status.CurrentInPlaceRestartAttempt = ptr.To(all.Highest)
			}
		})
	}), Rules: []string{attemptsGoUp}, First: 40392},
	"Jobs that count as others": {Mutant: worldMutant{counts: func(jobs map[types.UID]planinplace.State) {
		for uid := range jobs {
			for _, other := range jobs {
				jobs[uid] = other
			}
		}
	}}, Rules: []string{countsAreRight}},
	"agents that do not wait for each other":         {Mutant: worldMutant{hasty: true}, Rules: []string{barrierTogether}},
	"agents that take back what they have said":      {Mutant: worldMutant{unsaying: true}, Rules: []string{barrierTogether}},
	"agents that begin with an old state of the set": {Mutant: worldMutant{stale: true}, Rules: []string{everySetFinishes}},
	"any cause": {Mutant: worldMutant{decide: func(p *worldProcess, o plan.Observed) plan.Plan {
		for _, pod := range p.pods.Objects {
			if cause, known := o.FailedInPlace.Get(); known && len(pod.Status.ContainerStatuses) > 0 {
				cause = cause.DeepCopy()
				o.FailedInPlace = hostplan.Of(cause)
				cause.ExitCode = &pod.Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode
			}
		}
		return plan.Decide(o)
	}}, Rules: []string{firstCauseIsFirst}, First: 722},
}

// eachCount changes the status that is decided by what was counted of all Jobs.
func eachCount(o plan.Observed, out *plan.Plan, change func(planinplace.State, *jobsetv1alpha2.JobSetStatus)) {
	var all planinplace.State
	for _, job := range o.Jobs {
		pods := o.InPlace.Value()[job.UID]
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
	inPlaceWorlds.ShowDefects(t, inPlaceWorlds.Number, inPlaceDefects)
}
