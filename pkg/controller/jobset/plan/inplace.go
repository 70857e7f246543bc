// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// RestartsInPlace reports whether decisions about the set depend on its pods.
func RestartsInPlace(js *jobsetv1alpha2.JobSet, gates gates.Gates) bool {
	policy := js.Spec.FailurePolicy
	return gates.InPlaceRestart && policy != nil && policy.RestartStrategy == jobsetv1alpha2.RestartStrategyInPlaceRestart
}

// InPlace is how far the pods of one Job have come with restarting where they are.
type InPlace struct {
	// Pods is the number of pods that say which attempt they have reached. Pods that have ended do not count.
	Pods int64
	// Succeeded is the number of pods that have succeeded. They do not restart, and the restart does not wait for them.
	Succeeded int64
	// Lowest and Highest are the attempts that they have reached.
	Lowest, Highest int32
	// First is the name of the pod that was the first to reach Highest, and Order is its place among those of all Jobs.
	First string
	Order uint64
	// ContainerRestarts is the largest number of restarts of a container, pods that have failed included.
	ContainerRestarts int32
	// Problems are pods that say something else than an attempt, one sentence each, sorted by pod.
	Problems []string
}

// add adds the pods of another Job.
func (s *InPlace) add(other InPlace) {
	switch {
	case other.Pods == 0:
	case s.Pods == 0:
		s.Lowest, s.Highest, s.First, s.Order = other.Lowest, other.Highest, other.First, other.Order
	default:
		if other.Highest > s.Highest || other.Highest == s.Highest && other.Order < s.Order {
			s.Highest, s.First, s.Order = other.Highest, other.First, other.Order
		}
		s.Lowest = min(s.Lowest, other.Lowest)
	}
	s.Pods += other.Pods
	s.Succeeded += other.Succeeded
	s.ContainerRestarts = max(s.ContainerRestarts, other.ContainerRestarts)
	s.Problems = append(s.Problems, other.Problems...)
}

// lookInPlace adds up the pods of the present Jobs. Pods of earlier attempts, which may still be ending, are no part of
// what restarts together.
func lookInPlace(o Observed, owned children) (state InPlace) {
	for _, jobs := range [][]*batchv1.Job{owned.active, owned.succeeded, owned.failed} {
		for _, job := range jobs {
			pods := o.InPlace[job.UID]
			pods.Succeeded = max(pods.Succeeded, int64(job.Status.Succeeded)) // pods may be gone that have succeeded
			state.add(pods)
		}
	}
	slices.Sort(state.Problems)
	return state
}

// FirstInPlace returns the pod of the present attempt of the set that was the first to restart, and its Job; nil if
// none has. What failed in it is the first cause of the restart of the others.
func FirstInPlace(o Observed) (job *batchv1.Job, pod string) {
	if !o.KeepAttempts || len(o.InPlace) == 0 {
		return nil, ""
	}
	var state InPlace
	for _, candidate := range o.Jobs {
		if candidate.Labels[jobsetv1alpha2.RestartsKey] != itoa(o.JobSet.Status.Restarts) {
			continue
		}
		state.add(o.InPlace[candidate.UID])
		if its := o.InPlace[candidate.UID]; its.Pods > 0 && its.Order == state.Order {
			job = candidate
		}
	}
	if state.Highest == 0 {
		return nil, ""
	}
	return job, state.First
}

// inPlaceVerdict ends a set whose pods have restarted too often; nil for others.
func inPlaceVerdict(o Observed, owned children) *verdict {
	if !RestartsInPlace(o.JobSet, o.Gates) {
		return nil
	}
	state, status := lookInPlace(o, owned), &o.JobSet.Status
	limit := helper.RestartLimit(o.JobSet)
	if int64(state.ContainerRestarts) <= limit && int64(state.Highest)-int64(status.Restarts-status.RestartsCountTowardsMax) <= limit {
		return nil
	}
	return &verdict{action: jobsetv1alpha2.FailJobSet, reason: reasonReachedMaxRestarts, message: messageReachedMaxRestarts, inPlace: true}
}

// setInPlaceAttempts tells the pods, through the status, which attempt they must leave, and which all have reached. It
// returns what keeps it from doing so.
func (b *statusBuilder) setInPlaceAttempts(owned children) (problems []string) {
	if !RestartsInPlace(b.o.JobSet, b.o.Gates) {
		return nil
	}
	state := lookInPlace(b.o, owned)
	expected, err := podsOf(b.o.JobSet)
	if err != nil {
		state.Problems = append(state.Problems, err.Error())
	}
	if len(state.Problems) > 0 {
		return state.Problems
	}
	switch latest := state.Highest; {
	case state.Pods > 0 && state.Pods+state.Succeeded == expected && state.Lowest == latest:
		b.next.CurrentInPlaceRestartAttempt = ptr.To(latest)
		b.noteLateCause(latest)
	case latest > 0 && latest-1 > ptr.Deref(b.next.PreviousInPlaceRestartAttempt, -1):
		b.next.PreviousInPlaceRestartAttempt = ptr.To(latest - 1)
		b.restartAttemptInPlace()
	}
	return nil
}

// podsOf returns the number of pods of a set all of whose Jobs run as many pods as they need completions.
func podsOf(js *jobsetv1alpha2.JobSet) (n int64, err error) {
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		spec := rj.Template.Spec
		if spec.Parallelism == nil || !ptr.Equal(spec.Parallelism, spec.Completions) {
			return 0, fmt.Errorf("replicatedJob %q prevents the in-place restart: its completions must be set and equal its parallelism", rj.Name)
		}
		n += int64(helper.Replicas(rj)) * int64(*spec.Parallelism)
	}
	return n, nil
}
