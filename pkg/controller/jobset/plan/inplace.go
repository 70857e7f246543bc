// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/policy"
)

// askInPlace asks how far pods have come that restart where they are.
func askInPlace(o Observed) Asks {
	return Asks{InPlace: o.InPlace.Open() && inplace.Restarts(o.JobSet, o.Gates)}
}

// askFailureInPlace asks what failed in the pod that was the first to restart.
func askFailureInPlace(s state) (c changes) {
	if s.FailedInPlace.Open() {
		c.plan.Asks.FirstInPlace = firstInPlace(s.Observed)
	}
	return c
}

// firstInPlace returns the pod that was the first to restart; nil if none has.
func firstInPlace(o Observed) *inplace.Pod {
	pods := o.InPlace.Value()
	if !o.KeepAttempts || len(pods) == 0 {
		return nil
	}
	return inplace.First(o.JobSet, o.Jobs, pods)
}

// podsInPlace adds up how far the pods of the present Jobs have come.
func podsInPlace(o Observed, owned children) inplace.State {
	return inplace.Sum(o.InPlace.Value(), jobsOf(owned.active), owned.succeeded, owned.failed)
}

// inPlaceVerdict ends a set whose pods have restarted too often; nil for others.
func inPlaceVerdict(o Observed, owned children) *policy.Verdict {
	if !inplace.Restarts(o.JobSet, o.Gates) {
		return nil
	}
	state, status := podsInPlace(o, owned), &o.JobSet.Status
	limit := helper.RestartLimit(o.JobSet)
	if int64(state.ContainerRestarts) <= limit && int64(state.Highest)-int64(status.Restarts-status.RestartsCountTowardsMax) <= limit {
		return nil
	}
	return policy.TooManyRestarts()
}

// followInPlace tells the pods, through the status, which attempt they must leave, and which all have reached.
func followInPlace(s state) changes {
	if !inplace.Restarts(s.JobSet, s.Gates) {
		return changes{}
	}
	pods := podsInPlace(s.Observed, s.owned)
	expected, err := inplace.PodsOf(s.JobSet)
	if err != nil {
		pods.Problems = append(pods.Problems, err.Error())
	}
	if len(pods.Problems) > 0 {
		return changes{plan: Plan{Problems: pods.Problems}}
	}
	switch latest := pods.Highest; {
	case latest < ptr.Deref(s.next.CurrentInPlaceRestartAttempt, 0):
		// The cache of pods of a new leader may lag behind the former one. If the attempt went back, a pod that is replaced meanwhile would
		// join it, while the workers of all others run on.
		return changes{}
	case pods.Pods > 0 && pods.Pods+pods.Succeeded == expected && pods.Lowest == latest:
		c := lateCause(s, latest)
		c.edits = append(c.edits, func(next *jobsetv1alpha2.JobSetStatus) { next.CurrentInPlaceRestartAttempt = &latest })
		return c
	case latest > 0 && latest-1 > ptr.Deref(s.next.PreviousInPlaceRestartAttempt, -1):
		c := restartInPlace(s)
		c.edits = append(c.edits, func(next *jobsetv1alpha2.JobSetStatus) { next.PreviousInPlaceRestartAttempt = ptr.To(latest - 1) })
		return c
	}
	return changes{}
}
