// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// findAttempt returns the attempt of that number.
func findAttempt(js *jobsetv1alpha2.JobSet, number int) (*jobsetv1alpha2.Attempt, error) {
	attempts := js.Status.Attempts
	if len(attempts) == 0 {
		if snapshot.LacksAttempts(js) {
			return nil, fmt.Errorf("--attempt: %s", snapshot.NoAttempts)
		}
		return nil, fmt.Errorf("--attempt: jobset %s has not run yet", js.Name)
	}
	for i := range attempts {
		if int(attempts[i].Number) == number {
			return &attempts[i], nil
		}
	}
	return nil, fmt.Errorf("--attempt: attempt %d is not on record; those of jobset %s are %d to %d", number, js.Name, attempts[0].Number, attempts[len(attempts)-1].Number)
}

// restartsOf returns what the label restart-attempt of the Jobs of each attempt is. Attempts are more than restarts of the
// whole set: those that resumed it, or started a part of it, left the label of the other Jobs as it was.
func restartsOf(js *jobsetv1alpha2.JobSet) map[int32]int32 {
	out := map[int32]int32{}
	restarts := js.Status.Restarts
	attempts := js.Status.Attempts
	for i, a := range slices.Backward(attempts) {
		out[a.Number] = restarts
		counted := a.Scope == jobsetv1alpha2.ScopeJobSet &&
			(a.Trigger == jobsetv1alpha2.TriggerFailurePolicy || a.Trigger == jobsetv1alpha2.TriggerRequested || a.Trigger == jobsetv1alpha2.TriggerRetry)
		// A finished set goes on after a retry only, which counts also when the set ran later, after it was resumed.
		retried := i > 0 && (attempts[i-1].Outcome == jobsetv1alpha2.OutcomeFailed || attempts[i-1].Outcome == jobsetv1alpha2.OutcomeCancelled)
		if counted || retried {
			restarts--
		}
	}
	return out
}

// inAttempt returns the pods that ran in the attempt.
func inAttempt(js *jobsetv1alpha2.JobSet, a *jobsetv1alpha2.Attempt, pods []*corev1.Pod) []*corev1.Pod {
	restarts, inPlace := restartsOf(js)[a.Number], false
	if js.Spec.FailurePolicy != nil {
		inPlace = js.Spec.FailurePolicy.RestartStrategy == jobsetv1alpha2.RestartStrategyInPlaceRestart
	}
	var out []*corev1.Pod
	for _, pod := range pods {
		label, err := strconv.ParseInt(pod.Labels[jobsetv1alpha2.RestartsKey], 10, 32)
		// Pods that are restarted in place outlive attempts with the label of the first one.
		if err == nil && !inPlace && int32(label) != restarts {
			continue
		}
		// Times of pods are those of the second.
		if a.EndTime != nil && created(pod).After(a.EndTime.Time) {
			continue
		}
		if end := stopped(pod); a.RequestTime != nil && !end.IsZero() && end.Before(a.RequestTime.Truncate(time.Second)) {
			continue
		}
		out = append(out, pod)
	}
	return out
}

// newestCause returns the newest attempt that a failure ended, or nil.
func newestCause(js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.Attempt {
	for i := range slices.Backward(js.Status.Attempts) {
		if js.Status.Attempts[i].FirstCause != nil {
			return &js.Status.Attempts[i]
		}
	}
	return nil
}
