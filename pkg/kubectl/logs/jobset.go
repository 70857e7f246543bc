// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	informers "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// JobSet is the Loader of JobSets.
func JobSet(ctx context.Context, c *cli.Clients, name string) (*Source, error) {
	return snapshot.Read(ctx, c, name, snapshot.Load, sourceOf)
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
			(a.Trigger == jobsetv1alpha2.TriggerFailurePolicy || a.Trigger == jobsetv1alpha2.TriggerRequested ||
				a.Trigger == jobsetv1alpha2.TriggerRetry)
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
		// The API stores the times of pods in whole seconds.
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

// sourceOf returns a set as a source.
func sourceOf(set *snapshot.Set) *Source {
	js := set.JobSet
	return &Source{
		Object: js, kind: cli.JobSet, noun: "set", ref: js.Name, state: helper.Phase(js), pods: set.Pods, selector: podsOf(js),
		prepare:  func(s *selection) (records, error) { return historyOf(js), s.validate(js) },
		informer: informers.NewFilteredJobSetInformer,
		over:     func(obj any) bool { return over(obj.(*jobsetv1alpha2.JobSet), js.UID) },
	}
}

// historyOf are the attempts that a set keeps.
func historyOf(js *jobsetv1alpha2.JobSet) records {
	h := records{absent: fmt.Errorf("jobset %s has not run yet", js.Name)}
	if snapshot.LacksAttempts(js) {
		h.absent = errors.New(snapshot.NoAttempts(js))
	}
	for i := range js.Status.Attempts {
		a := &js.Status.Attempts[i]
		h.attempts = append(h.attempts, record{
			number: int(a.Number), title: fmt.Sprintf("attempt %d", a.Number), cause: a.FirstCause,
			pods: func(pods []*corev1.Pod) []*corev1.Pod { return inAttempt(js, a, pods) },
		})
	}
	return h
}

func podsOf(js *jobsetv1alpha2.JobSet) string {
	selector := jobsetv1alpha2.JobSetNameKey + "=" + js.Name
	if js.UID != "" {
		selector += "," + jobsetv1alpha2.JobSetUIDKey + "=" + string(js.UID)
	}
	return selector
}

// over reports whether the set will have no new pods: it finished, or another one has taken its name.
func over(js *jobsetv1alpha2.JobSet, uid types.UID) bool {
	if js.UID != uid {
		return true
	}
	state, _ := helper.Finished(js)
	return state != ""
}
