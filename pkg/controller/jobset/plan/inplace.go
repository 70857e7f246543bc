// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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

// Pod is what decisions about restarts in place use of a pod.
type Pod struct {
	// Name of the pod, in the namespace of the set.
	Name string
	// Job is the UID of the Job that controls the pod.
	Job types.UID
	// Failed means that the pod is in the phase Failed.
	Failed bool
	// ContainerRestarts is the largest number of restarts of a container.
	ContainerRestarts int32
	// InPlaceAttempt is the attempt that the pod says it has reached; nil if it says nothing.
	InPlaceAttempt *string
}

// inPlace is how far the pods of a set have come with restarting where they are (docs/reference/jobset.md#in-place-restart).
type inPlace struct {
	// attempts are those that pods say they have reached.
	attempts []int32
	// containerRestarts is the largest number of restarts of a container.
	containerRestarts int32
	// problems tell of pods and templates that make no sense.
	problems []string
}

// lookInPlace looks at the pods of the present Jobs. Pods of earlier attempts, which may still be ending, are no part of
// what restarts together.
func lookInPlace(o Observed, kids children) inPlace {
	current := sets.New[types.UID]()
	for _, job := range slices.Concat(kids.active, kids.succeeded, kids.failed) {
		current.Insert(job.UID)
	}
	var state inPlace
	for _, pod := range o.Pods {
		if !current.Has(pod.Job) {
			continue
		}
		state.containerRestarts = max(state.containerRestarts, pod.ContainerRestarts)
		if pod.InPlaceAttempt == nil || pod.Failed {
			continue
		}
		attempt, err := strconv.ParseInt(*pod.InPlaceAttempt, 10, 32)
		if err != nil || attempt < 0 {
			state.problems = append(state.problems, fmt.Sprintf("pod %q prevents the in-place restart: annotation %s must be a number of 0 or more, not %q",
				pod.Name, jobsetv1alpha2.InPlaceRestartAttemptKey, *pod.InPlaceAttempt))
			continue
		}
		state.attempts = append(state.attempts, int32(attempt))
	}
	slices.Sort(state.problems)
	return state
}

func (s inPlace) latest() int32 {
	if len(s.attempts) == 0 {
		return 0
	}
	return slices.Max(s.attempts)
}

// inPlaceVerdict ends a set whose pods have restarted too often; nil for others.
func inPlaceVerdict(o Observed, kids children) *verdict {
	if !RestartsInPlace(o.JobSet, o.Gates) {
		return nil
	}
	state, status := lookInPlace(o, kids), &o.JobSet.Status
	limit := helper.RestartLimit(o.JobSet)
	if int64(state.containerRestarts) <= limit && int64(state.latest())-int64(status.Restarts-status.RestartsCountTowardsMax) <= limit {
		return nil
	}
	return &verdict{action: jobsetv1alpha2.FailJobSet, reason: reasonReachedMaxRestarts, message: messageReachedMaxRestarts}
}

// setInPlaceAttempts tells the pods, through the status, which attempt they must leave, and which all have reached. It
// returns what keeps it from doing so.
func (b *statusBuilder) setInPlaceAttempts(kids children) (problems []string) {
	if !RestartsInPlace(b.o.JobSet, b.o.Gates) {
		return nil
	}
	state := lookInPlace(b.o, kids)
	expected, err := podsOf(b.o.JobSet)
	if err != nil {
		state.problems = append(state.problems, err.Error())
	}
	if len(state.problems) > 0 {
		return state.problems
	}
	latest := state.latest()
	switch together := int64(len(state.attempts)) == expected && slices.Min(append(state.attempts, latest)) == latest; {
	case together && len(state.attempts) > 0:
		b.next.CurrentInPlaceRestartAttempt = ptr.To(latest)
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
