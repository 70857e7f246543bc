// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// What histories contain is counted, so that a simulation which no longer gets somewhere does not pass for a good one.
const (
	syncs = iota
	failedSyncs
	lags
	troubles
	kills
	conflicts
	heldStatuses
	namesTaken
	fullPlans
	creations
	resumes
	setRestarts
	jobRestartsSeen
	jobRestartsAtOnce
	completions
	setFailures
	outlivings
	recreations
	blocked
	earlyRestarts
	slowJobs
	deadlines
	executions
	interruptions
	holds
	nameConflicts
	denials
	refusalsSeen
	refusalsOver
	waitsForNodes
	podsAreRefused
	restorations
	restartRequests
	partRequests
	suspendRequests
	resumeRequests
	cancelRequests
	retryRequests
	causes
	setsHeld
	heldResumed
	takeOvers
	restsRunning
	restsSuspended
	restsFinished
	restsGone
	kinds
)

var kindNames = [kinds]string{
	"syncs", "failed syncs", "syncs put off because a cache lagged", "requests in trouble", "kills of the controller", "conflicts",
	"statuses held back",
	"names taken", "full plans", "Jobs created", "Jobs resumed", "restarts of sets", "restarts of single Jobs", "restarts of several Jobs at once", "completed sets", "failed sets",
	"sets deleted after their time to live", "sets created anew", "restarts that wait for the last Job to be gone",
	"restarts before the Job had failed", "Jobs that stop while the others run", "deadlines that were over", "executions counted", "suspensions that were taken back too late", "Jobs suspended by others", "conflicts of names told",
	"Jobs denied by name", "refusals of Jobs told", "refusals of Jobs that are over", "waits for nodes told", "refusals of pods told", "Jobs whose labels were restored",
	"restart the set", "restart a part of the set", "suspend the set", "resume the set", "cancel the set", "retry the set", "first causes told",
	"sets held after a restore", "held sets that were resumed", "restarts taken over after a restore",
	"ends running", "ends suspended", "ends finished", "ends deleted",
}

// tally counts what was seen, by kind.
type tally [kinds]int

func (t *tally) add(other *tally) {
	for i, n := range other {
		t[i] += n
	}
}

// missing returns the kinds that were not seen.
func (t *tally) missing() (names []string) {
	for i, n := range t {
		if n == 0 {
			names = append(names, kindNames[i])
		}
	}
	return names
}

func (t *tally) String() string {
	var lines []string
	for i, n := range t {
		lines = append(lines, fmt.Sprintf("%10d %s", n, kindNames[i]))
	}
	return strings.Join(lines, "\n")
}

// tallyDecision counts what a decision is about.
func (r *invariants) tallyDecision(d decision) {
	r.seen[setRestarts] += int(d.after.Restarts - d.before.Restarts)
	r.seen[jobRestartsSeen] += int(jobRestartsOf(d.after) - jobRestartsOf(d.before))
	r.seen[jobRestartsAtOnce] += int(one(jobRestartsOf(d.after)-jobRestartsOf(d.before) > 1))
	if finished(d.after) && !finished(d.before) {
		if conditionIs(d.after, jobsetv1alpha2.JobSetFailed) {
			r.seen[setFailures]++
		} else {
			r.seen[completions]++
		}
	}
	if d.ruling != nil && !finished(d.before) {
		r.seen[earlyRestarts] += int(one(d.ruling.job != nil && !ended(d.ruling.job)))
		r.seen[deadlines] += int(one(d.ruling.fails && d.ruling.job == nil))
	}
	r.seen[waitsForNodes] += int(one(conditionIs(d.after, jobsetv1alpha2.PodsUnschedulable) && !conditionIs(d.before, jobsetv1alpha2.PodsUnschedulable)))
	r.seen[podsAreRefused] += int(one(conditionIs(d.after, jobsetv1alpha2.PodCreationFailure) && !conditionIs(d.before, jobsetv1alpha2.PodCreationFailure)))
	r.seen[executions] += int(one(!ptr.Equal(d.before.ExecutionAttempts, d.after.ExecutionAttempts)))
	r.seen[interruptions] += int(one(d.interrupts()))
	policy := d.JobSet.Spec.FailurePolicy
	if policy != nil && policy.RestartStrategy == jobsetv1alpha2.RestartStrategyBlockingRecreate && !finished(d.after) {
		if waiting := having(d.Observed, previous); len(waiting) > 0 && len(waiting) < len(d.Jobs) {
			r.seen[blocked]++
		}
	}
}
