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

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
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

// askRestored asks whether the store was restored, if that matters.
func askRestored(o Observed) Asks {
	return Asks{Restored: o.Restored.Open() && restoreMatters(o)}
}

// restoreMatters reports whether the decision on a snapshot depends on Observed.Restored.
func restoreMatters(o Observed) bool {
	js := o.JobSet
	finished := finishedCondition(&js.Status)
	switch {
	case held(&js.Status):
		return false
	case finished != nil:
		return finished.Type == jobsetv1alpha2.JobSetFailed && jobsAhead(o)
	case jobsGone(o):
		return hasStarted(&js.Status) && decidedByOthers(js)
	}
	return suspended(js) && slices.ContainsFunc(o.Jobs, mayRun) || jobsAhead(o)
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
	return job.DeletionTimestamp == nil && !jobSuspended(job) && !jobEnded(job)
}

// jobsAhead reports whether a Job is in a later attempt than the status knows.
func jobsAhead(o Observed) bool {
	return slices.ContainsFunc(o.Jobs, func(job *batchv1.Job) bool {
		restarts, single := aheadBy(&o, job)
		return restarts > 0 || single > 0
	})
}

// aheadBy returns how many restarts of the set and of the single Job the status does not know. Jobs that are being deleted do not count:
// what replaces them says more.
func aheadBy(o *Observed, job *batchv1.Job) (restarts, single int32) {
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
func afterRestore(s state) (_ state, over bool) {
	if _, restored := s.Restored.Get(); !restored && !held(s.next) {
		return s, false
	}
	s, tookOver := run(s, takeOver)
	if finishedCondition(s.next) != nil {
		return s, false
	}
	s = fold(s, reports(hold(s)...))
	switch {
	case tookOver:
		return s, true
	case !held(s.next):
		return s, false
	case jobsLeft(s.Observed):
		s, _ = advance(s) // what its Jobs come to counts
	default:
		s, _ = run(s, stopHeld)
	}
	if suspended(s.JobSet) && finishedCondition(s.next) == nil {
		s = fold(s, suspension(s, true))
	}
	return s, true
}

// stopHeld ends the attempt of a set that is held and none of whose Jobs is left.
func stopHeld(s state) changes {
	return changes{edits: []edit{endAttempt(s.Observed, jobsetv1alpha2.OutcomeSuspended, messageHeld), clearStartTime}}
}

const (
	messageHeld     = "the store was restored from a backup"
	messageTookOver = "the store was restored from a backup, and the jobs are in a later attempt"
)

// hold begins the hold of a restored set, or ends that of a set whose Jobs exist after all.
func hold(s state) []hostplan.Trouble {
	js, restored := s.JobSet, s.Restored.Value()
	resume := fmt.Sprintf("`kubectl jobset resume %s -n %s`", js.Name, js.Namespace)
	switch {
	case held(s.next) && !suspended(js) && jobsLeft(s.Observed):
		return []hostplan.Trouble{over(jobsetv1alpha2.Held, "JobsExist", "jobs of the jobset exist")}
	case held(s.next) || restored.Acted:
	case jobsGone(s.Observed) && hasStarted(&js.Status) && decidedByOthers(js):
		return []hostplan.Trouble{
			heldBecause("the store was restored from a backup in which the jobset had started, but none of its jobs exist: " +
				"it may have finished or been deleted since; delete it, or run it again with " + resume),
			over(jobsetv1alpha2.JobSetRestarting, jobsetv1alpha2.ReasonRestoredFromBackup, messageHeld),
		}
	case suspended(js) && !restored.Edited && slices.ContainsFunc(s.Jobs, mayRun):
		return []hostplan.Trouble{heldBecause("the store was restored from a backup in which the jobset is suspended, but its jobs run: " +
			"they are left alone until it is resumed with " + resume)}
	}
	return nil
}

// heldBecause returns what holds a set.
func heldBecause(message string) hostplan.Trouble {
	return hostplan.Trouble{Type: jobsetv1alpha2.Held, Reason: jobsetv1alpha2.ReasonRestoredFromBackup, Message: message}
}

// takeOver raises the numbers of attempts to those of the Jobs, if there is anything to raise. A set that had failed when the
// backup was made, and was retried since, has not failed.
func takeOver(s state) changes {
	if current(s.next, jobsetv1alpha2.JobSetCompleted) != nil {
		return changes{}
	}
	var ahead aheadJobs
	for _, job := range slices.SortedFunc(slices.Values(s.Jobs), func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) }) {
		ofSet, ofJob := aheadBy(&s.Observed, job)
		ahead.restarts, ahead.attempts = max(ahead.restarts, ofSet), max(ahead.attempts, ofSet, ofJob)
		if ofJob > 0 {
			ahead.jobs, ahead.by = append(ahead.jobs, job), append(ahead.by, ofJob)
		}
	}
	if ahead.attempts == 0 {
		return changes{}
	}
	return changes{
		commits: true,
		edits:   []edit{ahead.count(s.Observed), hasNotFailed, ahead.attempt(s)},
		events: []Event{{Type: corev1.EventTypeNormal, Reason: reasonRestartsTakenOver, Note: fmt.Sprintf(
			"the store was restored from a backup; restarts since then were taken over from the jobs, which are in restart attempt %d",
			s.next.Restarts+ahead.restarts)}},
	}
}

// aheadJobs is how far the Jobs are ahead of the status of their set.
type aheadJobs struct {
	// restarts of the set, and attempts, of the set or of single Jobs, are not known.
	restarts, attempts int32
	// jobs were restarted alone, each as often as by says.
	jobs []*batchv1.Job
	by   []int32
}

// count counts the restarts.
func (a *aheadJobs) count(o Observed) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) {
		counts := byName(next.ReplicatedJobsStatus)
		for i, job := range a.jobs {
			addJobRestarts(o, counts, job, a.by[i], counting(o, next, a.by[i]))
		}
		next.Restarts += a.restarts
		next.RestartsCountTowardsMax += counting(o, next, a.restarts)
		if next.ExecutionAttempts != nil {
			*next.ExecutionAttempts += a.restarts
		}
	}
}

// hasNotFailed removes the end of a set that was retried since. Upstream never shows that condition as False.
func hasNotFailed(next *jobsetv1alpha2.JobSetStatus) {
	if finishedCondition(next) != nil {
		meta.RemoveStatusCondition(&next.Conditions, jobsetv1alpha2.JobSetFailed)
		next.TerminalState = ""
	}
}

// counting returns how many of the restarts count towards the maximum: as many as there is room for. Others were requested.
func counting(o Observed, status *jobsetv1alpha2.JobSetStatus, restarts int32) int32 {
	room := helper.RestartLimit(o.JobSet) - helper.CountedRestarts(status)
	return int32(max(0, min(int64(restarts), room)))
}

// attempt adds an attempt to the history for those that are not known. Without a history, beginAttempt begins the first one.
func (a *aheadJobs) attempt(s state) edit {
	last := helper.CurrentAttempt(s.next)
	if !s.KeepAttempts || last == nil {
		return func(*jobsetv1alpha2.JobSetStatus) {}
	}
	number := last.Number + a.attempts
	return func(next *jobsetv1alpha2.JobSetStatus) {
		endAttempt(s.Observed, jobsetv1alpha2.OutcomeRestarted, messageTookOver)(next)
		if suspended(s.JobSet) {
			return
		}
		started := helper.BeginAttempt(next, jobsetv1alpha2.Attempt{
			Trigger: jobsetv1alpha2.TriggerFailurePolicy, Scope: jobsetv1alpha2.ScopeJobSet, Reason: messageTookOver,
		}, s.Now.Time)
		started.Number = number
		started.CreateTime = started.RequestTime // the Jobs stay
	}
}
