// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// tallyDecision counts what a decision is about.
func (r *invariants) tallyDecision(d decision) {
	r.tallyGangs(d)
	r.gangs.letGo(d)
	r.Seen["restarts of sets"] += int(d.after.Restarts - d.before.Restarts)
	r.Seen["restarts of single Jobs"] += int(jobRestartsOf(d.after) - jobRestartsOf(d.before))
	r.Seen["restarts of several Jobs at once"] += int(one(jobRestartsOf(d.after)-jobRestartsOf(d.before) > 1))
	if finished(d.after) && !finished(d.before) {
		if conditionIs(d.after, jobsetv1alpha2.JobSetFailed) {
			r.Seen["failed sets"]++
		} else {
			r.Seen["completed sets"]++
		}
	}
	if d.ruling != nil && !finished(d.before) {
		r.Seen["restarts before the Job had failed"] += int(one(d.ruling.job != nil && !ended(d.ruling.job)))
		r.Seen["deadlines that were over"] += int(one(d.ruling.fails && d.ruling.job == nil))
	}
	r.Seen["waits for nodes told"] += int(one(conditionIs(d.after, jobsetv1alpha2.PodsUnschedulable) && !conditionIs(d.before, jobsetv1alpha2.PodsUnschedulable)))
	r.Seen["refusals of pods told"] += int(one(conditionIs(d.after, jobsetv1alpha2.PodCreationFailure) && !conditionIs(d.before, jobsetv1alpha2.PodCreationFailure)))
	r.Seen["executions counted"] += int(one(!ptr.Equal(d.before.ExecutionAttempts, d.after.ExecutionAttempts)))
	r.Seen["suspensions that were taken back too late"] += int(one(d.interrupts()))
	policy := d.JobSet.Spec.FailurePolicy
	if policy != nil && policy.RestartStrategy == jobsetv1alpha2.RestartStrategyBlockingRecreate && !finished(d.after) {
		if waiting := having(d.Observed, previous); len(waiting) > 0 && len(waiting) < len(d.Jobs) {
			r.Seen["restarts that wait for the last Job to be gone"]++
		}
	}
}
