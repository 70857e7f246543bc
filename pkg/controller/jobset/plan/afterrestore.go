// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// After the store was restored from a backup, a set is as old as the backup while its Jobs are as they are now. What the Jobs say about
// attempts is taken over. Where they do not say what became of the set, it is held until a person decides: it may have finished, and
// to run it again could overwrite its results. A set is held
//
//   - if it has started and none of its Jobs is left: it has finished and expired, or was deleted, since the backup. Jobs that are being
//     deleted do not count. A suspended set is only held if a queue or an owner would resume it; otherwise a person does;
//   - if it is suspended and Jobs of it run: it was resumed since. To suspend them would stop what runs.
//
// The hold is a condition. It ends with the action resume, with an edit that resumes the set, or when a set that is not
// suspended has Jobs after all. All this is about sets whose status no controller has written since the restore:
// otherwise, Jobs that are ahead of their set, or missing, mean an outdated cache or a Job that a user has deleted. A
// set on which a user has acted since is not held.

// reasonRestartsTakenOver is the reason of the event about restarts of which only the Jobs know.
const reasonRestartsTakenOver = "RestartsTakenOver"

// RestoreMatters reports whether the decision on a snapshot depends on Observed.Restored.
func RestoreMatters(o Observed) bool {
	js := o.JobSet
	finished := finishedCondition(&js.Status)
	switch {
	case js.DeletionTimestamp != nil, !Ours(js), held(&js.Status):
		return false
	case finished != nil:
		return finished.Type == jobsetv1alpha2.JobSetFailed && jobsAhead(indexed(o))
	case jobsGone(o):
		return hasStarted(&js.Status) && decidedByOthers(js)
	}
	return suspended(js) && slices.ContainsFunc(o.Jobs, mayRun) || jobsAhead(indexed(o))
}

// held reports whether the set waits for a person.
func held(status *jobsetv1alpha2.JobSetStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, jobsetv1alpha2.Held)
}

// decidedByOthers reports whether the set runs without a decision of a person.
func decidedByOthers(js *jobsetv1alpha2.JobSet) bool { return !suspended(js) || queued(js) }

// hasStarted reports whether Jobs of the set were created, or were about to be.
func hasStarted(status *jobsetv1alpha2.JobSetStatus) bool {
	return status.Restarts > 0 || len(status.Attempts) > 0 || status.StartTime != nil || status.ExecutionAttempts != nil ||
		slices.ContainsFunc(status.ReplicatedJobsStatus, func(count jobsetv1alpha2.ReplicatedJobStatus) bool {
			return count.Ready+count.Active+count.Suspended+count.Succeeded+count.Failed > 0 || len(count.JobRestarts) > 0
		})
}

// jobsGone reports whether the set has no Jobs but such as are being deleted. Those of an earlier attempt than the stored one mean that
// the set is about to go on: had it done so, their names would be taken by later ones.
func jobsGone(o Observed) bool {
	return !slices.ContainsFunc(o.Jobs, func(job *batchv1.Job) bool {
		attempt, err := intLabel(job, jobsetv1alpha2.RestartsKey)
		return job.DeletionTimestamp == nil || err == nil && attempt < o.JobSet.Status.Restarts
	})
}

// jobsLeft reports whether the set has Jobs that are not being deleted.
func jobsLeft(o Observed) bool {
	return slices.ContainsFunc(o.Jobs, func(job *batchv1.Job) bool { return job.DeletionTimestamp == nil })
}

// mayRun reports whether a Job has pods, or may have some at any time.
func mayRun(job *batchv1.Job) bool {
	return job.DeletionTimestamp == nil && !jobSuspended(job) &&
		helper.TrueJobCondition(job, batchv1.JobComplete) == nil && helper.TrueJobCondition(job, batchv1.JobFailed) == nil
}

// jobsAhead reports whether a Job is in a later attempt than the status knows.
func jobsAhead(o Observed) bool {
	return slices.ContainsFunc(o.Jobs, func(job *batchv1.Job) bool {
		restarts, single := aheadBy(o, job)
		return restarts > 0 || single > 0
	})
}

// aheadBy returns how many restarts of the set and of the single Job the status does not know. Jobs that are being deleted do not count:
// what replaces them says more.
func aheadBy(o Observed, job *batchv1.Job) (restarts, single int32) {
	place, index, err := placeOf(o, job)
	if err != nil || job.DeletionTimestamp != nil {
		return 0, 0
	}
	if attempt, err := intLabel(job, jobsetv1alpha2.RestartsKey); err == nil {
		restarts = max(0, attempt-o.JobSet.Status.Restarts)
	}
	if _, found := job.Labels[jobsetv1alpha2.JobRestartAttemptKey]; found {
		if attempt, err := intLabel(job, jobsetv1alpha2.JobRestartAttemptKey); err == nil {
			single = max(0, attempt-o.jobRestarts(place, index))
		}
	}
	return restarts, single
}

// afterRestore takes over what the Jobs say, and holds the set if that does not suffice. It reports whether nothing else may happen.
func (b *statusBuilder) afterRestore(owned children) bool {
	if !b.o.Restored && !held(b.next) {
		return false
	}
	tookOver := b.takeOver()
	if finishedCondition(b.next) != nil {
		return false
	}
	b.setHeld()
	switch {
	case tookOver:
		return true
	case !held(b.next):
		return false
	case jobsLeft(b.o):
		b.advance(owned) // what its Jobs come to counts
	default:
		b.endAttempt(jobsetv1alpha2.OutcomeSuspended, messageHeld)
		b.next.StartTime = nil
	}
	if suspended(b.o.JobSet) && finishedCondition(b.next) == nil {
		b.setSuspended(owned, true)
	}
	return true
}

const (
	messageHeld     = "the store was restored from a backup"
	messageTookOver = "the store was restored from a backup, and the jobs are in a later attempt"
)

// setHeld begins the hold of a restored set, or ends that of a set whose Jobs exist after all.
func (b *statusBuilder) setHeld() {
	js := b.o.JobSet
	resume := fmt.Sprintf("`kubectl jobset resume %s -n %s`", js.Name, js.Namespace)
	switch {
	case held(b.next):
		if !suspended(js) && jobsLeft(b.o) {
			b.endHold("JobsExist", "jobs of the jobset exist")
		}
	case b.o.ActedSinceRestore:
	case jobsGone(b.o) && hasStarted(&js.Status) && decidedByOthers(js):
		b.set(jobsetv1alpha2.Held, metav1.ConditionTrue, jobsetv1alpha2.ReasonRestoredFromBackup,
			"the store was restored from a backup in which the jobset "+
				"had started, but none of its jobs exist: it may have finished or been deleted since; delete it, or run it again with "+resume)
		b.set(jobsetv1alpha2.JobSetRestarting, metav1.ConditionFalse, jobsetv1alpha2.ReasonRestoredFromBackup, messageHeld)
	case suspended(js) && !b.o.EditedSinceRestore && slices.ContainsFunc(b.o.Jobs, mayRun):
		b.set(jobsetv1alpha2.Held, metav1.ConditionTrue, jobsetv1alpha2.ReasonRestoredFromBackup,
			"the store was restored from a backup in which the jobset "+
				"is suspended, but its jobs run: they are left alone until it is resumed with "+resume)
	}
}

func (b *statusBuilder) endHold(reason, message string) {
	b.set(jobsetv1alpha2.Held, metav1.ConditionFalse, reason, message)
}

// takeOver raises the numbers of attempts to those of the Jobs, and reports whether there was anything to raise. A set that had failed
// when the backup was made, and was retried since, has not failed.
func (b *statusBuilder) takeOver() bool {
	if meta.IsStatusConditionTrue(b.next.Conditions, jobsetv1alpha2.JobSetCompleted) {
		return false
	}
	var restarts, attempts int32
	for _, job := range slices.SortedFunc(slices.Values(b.o.Jobs), func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) }) {
		ofSet, ofJob := aheadBy(b.o, job)
		restarts, attempts = max(restarts, ofSet), max(attempts, ofSet, ofJob)
		if ofJob > 0 {
			b.raiseJobRestarts(job, ofJob)
		}
	}
	if attempts == 0 {
		return false
	}
	b.next.Restarts += restarts
	b.next.RestartsCountTowardsMax += b.counting(restarts)
	if b.next.ExecutionAttempts != nil {
		*b.next.ExecutionAttempts += restarts
	}
	if finishedCondition(b.next) != nil {
		meta.RemoveStatusCondition(&b.next.Conditions, jobsetv1alpha2.JobSetFailed) // upstream never shows it as False
		b.next.TerminalState = ""
	}
	b.recordTakeOver(attempts)
	b.events = append(b.events, Event{Type: corev1.EventTypeNormal, Reason: reasonRestartsTakenOver, Note: fmt.Sprintf(
		"the store was restored from a backup; restarts since then were taken over from the jobs, which are in restart attempt %d",
		b.next.Restarts)})
	return true
}

// counting returns how many of the restarts count towards the maximum: as many as there is room for. Others were requested.
func (b *statusBuilder) counting(restarts int32) int32 {
	room := helper.RestartLimit(b.o.JobSet) - helper.CountedRestarts(b.next)
	return int32(max(0, min(int64(restarts), room)))
}

func (b *statusBuilder) raiseJobRestarts(job *batchv1.Job, by int32) {
	rj, _ := b.o.replicatedJob(replicatedJobOf(job))
	count := byName(b.next.ReplicatedJobsStatus)[rj.Name]
	count.JobRestarts = withLength(count.JobRestarts, helper.Replicas(rj))
	count.JobRestarts[jobIndex(job)] += by
	if counting := b.counting(by); counting > 0 {
		count.JobRestartsCountTowardsMax = withLength(count.JobRestartsCountTowardsMax, helper.Replicas(rj))
		count.JobRestartsCountTowardsMax[jobIndex(job)] += counting
	}
}

// recordTakeOver adds an attempt to the history for those that are not known.
func (b *statusBuilder) recordTakeOver(attempts int32) {
	if !b.o.KeepAttempts {
		return
	}
	last := helper.CurrentAttempt(b.next)
	if last == nil {
		return // followAttempt begins the first one
	}
	number := last.Number + attempts
	b.endAttempt(jobsetv1alpha2.OutcomeRestarted, messageTookOver)
	if suspended(b.o.JobSet) {
		return
	}
	a := helper.BeginAttempt(b.next, jobsetv1alpha2.Attempt{
		Trigger: jobsetv1alpha2.TriggerFailurePolicy, Scope: jobsetv1alpha2.ScopeJobSet, Reason: messageTookOver,
	}, b.o.Now.Time)
	a.Number = number
	a.CreateTime = a.RequestTime // the Jobs stay
}
