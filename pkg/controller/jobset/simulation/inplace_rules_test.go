// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
)

// The rules of sets that restart in place.
const (
	countsAreRight    = "the counts of pods are those of the pods that the cache shows"
	barrierTogether   = "a barrier is lifted only when all pods of the present Jobs have reached the attempt"
	restartsOnDemand  = "pods are to restart only if one has restarted"
	attemptsGoUp      = "attempts in place never go back"
	limitHolds        = "restarts in place never exceed maxRestarts"
	firstCauseIsFirst = "the first cause of a restart in place is a container that failed by itself"
)

func podsOfSet(js *jobsetv1alpha2.JobSet) (n int) {
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		n += int(*rj.Replicas * *rj.Template.Spec.Parallelism)
	}
	return n
}

// oneByOne looks at all pods in the cache one by one. It does not know which one came first.
func (r *worldRules) oneByOne(job types.UID) (out planinplace.State) {
	for _, pod := range r.process.pods.Objects {
		if jobUID(pod) != job {
			continue
		}
		for _, c := range pod.Status.ContainerStatuses {
			out.ContainerRestarts = max(out.ContainerRestarts, c.RestartCount)
		}
		n, err := strconv.ParseInt(pod.Annotations[jobsetv1alpha2.InPlaceRestartAttemptKey], 10, 32)
		if err != nil || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if pod.Status.Phase == corev1.PodSucceeded {
			out.Succeeded++
			continue
		}
		attempt := int32(n)
		if out.Pods == 0 {
			out.Lowest, out.Highest = attempt, attempt
		}
		out.Pods, out.Lowest, out.Highest = out.Pods+1, min(out.Lowest, attempt), max(out.Highest, attempt)
	}
	return out
}

// decidedInPlace checks what is decided about attempts in place, and on what.
func (r *worldRules) decidedInPlace(o plan.Observed, p plan.Plan) {
	var all planinplace.State
	for _, job := range o.Jobs {
		want, counted := r.oneByOne(job.UID), o.InPlace.Value()[job.UID]
		counted.First, counted.Order, counted.Problems = "", 0, nil
		if counted.Pods != want.Pods || counted.Succeeded != want.Succeeded || counted.Lowest != want.Lowest || counted.Highest != want.Highest || counted.ContainerRestarts != want.ContainerRestarts {
			r.Fail(countsAreRight, "job %s: counted %+v, are %+v", job.Name, counted, want)
		}
		m := meaningOf(o, job)
		if m == previous || m == senseless {
			continue
		}
		all.Succeeded += max(want.Succeeded, int64(job.Status.Succeeded))
		if want.Pods == 0 {
			continue
		}
		if all.Pods == 0 {
			all.Lowest, all.Highest = want.Lowest, want.Highest
		}
		all.Pods, all.Lowest, all.Highest = all.Pods+want.Pods, min(all.Lowest, want.Lowest), max(all.Highest, want.Highest)
	}
	if p.Status == nil {
		return
	}
	before, after := &o.JobSet.Status, p.Status
	if current := after.CurrentInPlaceRestartAttempt; current != nil && !ptr.Equal(before.CurrentInPlaceRestartAttempt, current) {
		r.Seen["attempts that all have reached"]++
		if int(all.Pods+all.Succeeded) != podsOfSet(o.JobSet) || all.Lowest != *current || all.Highest != *current {
			r.Fail(barrierTogether, "set %s: attempt %d, the pods are %+v", o.JobSet.Name, *current, all)
		}
	}
	if before, after := before.PreviousInPlaceRestartAttempt, after.PreviousInPlaceRestartAttempt; after != nil && !ptr.Equal(before, after) {
		r.Seen["restarts in place"]++
		if *after != all.Highest-1 {
			r.Fail(restartsOnDemand, "set %s: attempt %d is to be left, the pods are %+v", o.JobSet.Name, *after, all)
		}
	}
}

// storedInPlace checks a status right before it is stored.
func (r *worldRules) storedInPlace(o worldObserved, js *jobsetv1alpha2.JobSet, after *jobsetv1alpha2.JobSetStatus) {
	before := &js.Status
	for _, attempts := range [][2]*int32{
		{before.PreviousInPlaceRestartAttempt, after.PreviousInPlaceRestartAttempt}, {before.CurrentInPlaceRestartAttempt, after.CurrentInPlaceRestartAttempt},
	} {
		if ptr.Deref(attempts[1], -1) < ptr.Deref(attempts[0], -1) {
			r.Fail(attemptsGoUp, "set %s: %d, then %d", js.Name, *attempts[0], ptr.Deref(attempts[1], -1))
		}
	}
	free := int64(after.Restarts - after.RestartsCountTowardsMax)
	if reached := int64(ptr.Deref(after.CurrentInPlaceRestartAttempt, 0)); reached-free > helper.RestartLimit(js) {
		r.Fail(limitHolds, "set %s reaches attempt %d of %d", js.Name, reached, helper.RestartLimit(js))
	}
	if !finished(before) && finished(after) && after.TerminalState == jobsetv1alpha2.TerminalStateFailed {
		r.Seen["sets that failed"]++
	}
	for i := range after.Attempts {
		a := &after.Attempts[i]
		if a.EndReason != "pods restart in place" || a.FirstCause == nil {
			continue
		}
		r.Seen["first causes of restarts in place"]++
		if ptr.Deref(a.FirstCause.ExitCode, exitOfWorker) != exitOfWorker {
			r.Fail(firstCauseIsFirst, "set %s, attempt %d: %+v", js.Name, a.Number, *a.FirstCause)
		}
	}
	if after.CurrentInPlaceRestartAttempt != nil && !ptr.Equal(before.CurrentInPlaceRestartAttempt, after.CurrentInPlaceRestartAttempt) {
		r.reached[reachedAttempt{js.UID, *after.CurrentInPlaceRestartAttempt}] = o.pods
	}
}

// reachedAttempt is an attempt that all pods of a set have reached.
type reachedAttempt struct {
	set     types.UID
	attempt int32
}

// lifted checks that the worker of a pod may run: no pod that the cache of the controller showed when it decided is in an earlier
// attempt. Pods that were created later do not count, since no controller can know of them.
func (r *worldRules) lifted(pod *corev1.Pod, js *jobsetv1alpha2.JobSet, attempt int32) {
	r.Seen["barriers lifted"]++
	looked, err := strconv.Atoi(r.reached[reachedAttempt{js.UID, attempt}])
	if err != nil {
		r.Fail(barrierTogether, "%s lifts the barrier of attempt %d, which the status of %s never said", pod.Name, attempt, js.Name)
	}
	for _, job := range r.ownJobs(js) {
		if meaningOf(plan.Observed{JobSet: js, Gates: r.gates}, job) == previous {
			continue
		}
		for _, other := range r.podsOf(job) {
			if r.podsSince[other.UID] > looked || other.DeletionTimestamp != nil || other.Status.Phase == corev1.PodSucceeded {
				continue
			}
			if n, err := strconv.Atoi(other.Annotations[jobsetv1alpha2.InPlaceRestartAttemptKey]); err != nil || int32(n) < attempt {
				r.Fail(barrierTogether, "%s lifts the barrier of attempt %d, %s says %q", pod.Name, attempt, other.Name, other.Annotations[jobsetv1alpha2.InPlaceRestartAttemptKey])
			}
		}
	}
}
