// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// checkRest checks that an environment at rest is as its set asks for.
func (e *env) checkRest() {
	js := e.set()
	if js == nil {
		e.Seen["ends deleted"]++
		if len(e.jobs.Objects) > 0 {
			e.Fail("nothing is left of a set that is gone", "job %s", e.jobs.Objects[0].Name)
		}
		return
	}
	o := e.truth()
	if next := e.decide(o); !samePlans.DeepEqual(withoutProblems(next), plan.Plan{}) {
		e.Fail("nobody has to wake a set that is not at rest", "%s; decides %s", describe(o), describePlan(next))
	}
	var wrong string
	switch {
	case js.DeletionTimestamp != nil:
		wrong = "it is still terminating"
	case js.Spec.ManagedBy != nil:
		if len(o.Jobs) > 0 || len(js.Status.ReplicatedJobsStatus) > 0 {
			wrong = "it is somebody else's"
		}
	case finished(&js.Status):
		e.Seen["ends finished"]++
		wrong = wrongWithFinished(o)
	case isSuspended(js):
		e.Seen["ends suspended"]++
		wrong = wrongWithSuspended(o)
	default:
		e.Seen["ends running"]++
		wrong = e.wrongWithRunning(o)
	}
	if wrong == "" && js.DeletionTimestamp == nil {
		wrong = wrongWithAttempt(js)
	}
	if wrong != "" {
		e.Fail("a set at rest is as its spec says", "%s: %s", wrong, describe(o))
	}
}

func withoutProblems(p plan.Plan) plan.Plan {
	p.Problems = nil
	return p
}

func wrongWithFinished(o plan.Observed) string {
	switch {
	case len(having(o, active))+len(having(o, previous)) > 0:
		return "Jobs outlive the end of the set"
	case o.JobSet.Spec.TTLSecondsAfterFinished != nil:
		return "the set outlives its time to live"
	}
	return ""
}

// wrongWithUnfinished is what may be wrong with a set whether it is suspended or runs.
func wrongWithUnfinished(o plan.Observed) string {
	switch {
	case len(having(o, previous)) > 0:
		return "there are Jobs of earlier attempts"
	case len(having(o, failed)) > 0:
		return "a failure is not dealt with"
	case hasSucceeded(o):
		return "a success is not dealt with"
	case conditionIs(&o.JobSet.Status, jobsetv1alpha2.ChildNameConflict):
		return "the names of Jobs count as taken"
	case conditionIs(&o.JobSet.Status, jobsetv1alpha2.JobCreationFailure):
		return "Jobs count as refused"
	case conditionIs(&o.JobSet.Status, jobsetv1alpha2.PodsUnschedulable):
		return "pods count as unschedulable"
	case conditionIs(&o.JobSet.Status, jobsetv1alpha2.PodCreationFailure):
		return "pods count as refused"
	case len(o.JobSet.Status.ReplicatedJobsStatus) != len(o.JobSet.Spec.ReplicatedJobs):
		return "replicatedJobs are not counted"
	}
	for i := range o.JobSet.Spec.ReplicatedJobs {
		rj := &o.JobSet.Spec.ReplicatedJobs[i]
		if mayStart(o, rj.Name) && len(jobsOf(o, rj)) != int(*rj.Replicas) {
			return "Jobs are missing"
		}
		for _, job := range jobsOf(o, rj) {
			if !hasSetName(job) {
				return "a Job lacks the label by which caches show it"
			}
			if o.Gates.ElasticJobSet && !ended(job) && rj.Template.Spec.Completions != nil && !ptr.Equal(job.Spec.Completions, rj.Template.Spec.Completions) {
				return "a Job has another size than its template"
			}
		}
	}
	return ""
}

func jobsOf(o plan.Observed, rj *jobsetv1alpha2.ReplicatedJob) (jobs []*batchv1.Job) {
	for _, job := range o.Jobs {
		if job.Labels[jobsetv1alpha2.ReplicatedJobNameKey] == rj.Name {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

func wrongWithSuspended(o plan.Observed) string {
	for _, job := range having(o, active) {
		if !jobIsSuspended(job) || hasPods(job) {
			return "a Job runs"
		}
	}
	switch {
	case !conditionIs(&o.JobSet.Status, jobsetv1alpha2.JobSetSuspended):
		return "the condition Suspended is not True"
	case conditionIs(&o.JobSet.Status, jobsetv1alpha2.JobSetRestarting):
		return "it is restarting"
	case o.JobSet.Status.StartTime != nil:
		return "its clock runs"
	}
	return wrongWithUnfinished(o)
}

func (e *env) wrongWithRunning(o plan.Observed) string {
	allUp, held := true, false
	for i := range o.JobSet.Spec.ReplicatedJobs {
		rj := &o.JobSet.Spec.ReplicatedJobs[i]
		allUp = allUp && hasStarted(o, rj)
		for _, job := range jobsOf(o, rj) {
			held = held || e.invariants.isHeld(job)
			if mayStart(o, rj.Name) && !ended(job) && (jobIsSuspended(job) || !isReady(job)) && !e.invariants.isHeld(job) {
				return "a Job does not run that may"
			}
		}
	}
	status := &o.JobSet.Status
	inOrder := o.JobSet.Spec.StartupPolicy.StartupPolicyOrder == jobsetv1alpha2.InOrder
	switch {
	case conditionIs(status, jobsetv1alpha2.JobSetSuspended) && !(held && inOrder):
		return "the condition Suspended is True"
	case o.Gates.JobSetActiveDeadlineSeconds && (status.StartTime == nil || o.JobSet.Spec.ActiveDeadlineSeconds != nil):
		return "the deadline is not watched"
	case o.Gates.ExecutionAttemptsTracking && status.ExecutionAttempts == nil:
		return "the execution is not counted"
	case allUp && inAttempt(status) != nil && inAttempt(status).ReadyTime == nil:
		return "nobody noticed that it is ready"
	case allUp && conditionIs(status, jobsetv1alpha2.JobSetRestarting):
		return "it is restarting although all Jobs are up"
	case inOrder && conditionIs(status, jobsetv1alpha2.JobSetStartupPolicyCompleted) != allUp:
		return "the condition StartupPolicyCompleted is wrong"
	}
	return wrongWithUnfinished(o)
}
