// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	// slowHistories is the share of the histories, in percent, in which a pod stops slowly in the end.
	slowHistories = 30
	// slowRounds is how often everybody gets a turn while that pod stops.
	slowRounds = 60

	slowAlone = "a Job that stops slowly delays no other"
)

// stopsSlowly reports whether a Job waits for a pod with a long grace period: it can neither go nor fail.
func (e *env) stopsSlowly(job *batchv1.Job) bool {
	return e.slow != "" && job.Name == e.slow && (job.DeletionTimestamp != nil || hasCondition(job, batchv1.JobFailureTarget))
}

// stabilizeSlowly lets everything come to rest that need not wait for the slow pod of one Job, and then lets that pod
// stop. A Job may fail meanwhile, so that the set restarts.
func (e *env) stabilizeSlowly() {
	jobs := e.ownJobs()
	if len(jobs) == 0 || !e.Dice.Percent(slowHistories) {
		return
	}
	e.slow = simulation.OneOf(e.Dice, jobs...).Name
	e.Note("a pod of job %s stops slowly from here on", e.slow)
	failures := e.Dice.IntN(3)
	if e.rounds(slowRounds, simulation.OneOf(e.Dice, runOn, failSoon), &failures) {
		e.checkWithoutSlow()
	}
	e.Note("the pod of job %s stops", e.slow)
	e.slow = ""
}

// checkWithoutSlow checks that all Jobs run, or have ended, which do not depend on the slow one.
func (e *env) checkWithoutSlow() {
	js := e.set()
	if js == nil || js.DeletionTimestamp != nil || js.Spec.ManagedBy != nil || finished(&js.Status) || isSuspended(js) {
		return
	}
	o := e.truth()
	policy := js.Spec.FailurePolicy
	if policy != nil && policy.RestartStrategy == jobsetv1alpha2.RestartStrategyBlockingRecreate && len(having(o, previous)) > 0 {
		return
	}
	if rulingOn(o) != nil {
		return // a Job has failed, and the set waits until its pods have stopped because it fails for good
	}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		for index := 0; mayStart(o, rj.Name) && index < int(*rj.Replicas); index++ {
			name := jobNameOf(rj.Name, index)
			if name == e.slow {
				job, found := e.jobs.Get(name)
				e.Seen["Jobs that stop while the others run"] += int(one(found && e.stopsSlowly(job)))
			} else if wrong := e.delayedBySlow(o, place{replicatedJob: rj.Name, index: int32(index)}); wrong != "" {
				e.Fail(slowAlone, "job %s is not %s, and job %s stops", name, wrong, e.slow)
			}
		}
	}
}

// delayedBySlow returns what a Job is not that does not depend on the slow one; "" if it is as it should be.
func (e *env) delayedBySlow(o plan.Observed, at place) string {
	job, found := e.jobs.Get(jobNameOf(at.replicatedJob, int(at.index)))
	switch {
	case (!found || meaningOf(o, job) != previous && jobIsSuspended(job)) && e.gangs.staysForSlow(o.JobSet, at):
		e.Seen["Jobs that wait for the group of pods that stop slowly"]++
	case !found || meaningOf(o, job) == previous:
		return "of the present attempt"
	case !ended(job) && (jobIsSuspended(job) || !isReady(job)) && !e.invariants.isHeld(job):
		return "ready"
	}
	return ""
}

// waitForSlowest makes every restart wait for the last Job.
func waitForSlowest(o *plan.Observed) {
	if policy := o.JobSet.Spec.FailurePolicy; policy != nil {
		policy.RestartStrategy = jobsetv1alpha2.RestartStrategyBlockingRecreate
	}
}
