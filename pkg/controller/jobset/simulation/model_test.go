// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// This file says once more, from docs/reference/jobset.md and in the plainest way, what package plan should find. It shares no code
// with that package.

// meaning is what a Job is to its set.
type meaning int

const (
	senseless meaning = iota
	previous
	succeeded
	failed
	active
)

// place is which Job of the set a Job is, in which attempt.
type place struct {
	replicatedJob         string
	index                 int32
	restarts, jobRestarts int32
	// jobRestartsKnown means that the Job says in which attempt of its own it is. Otherwise it is in the first one.
	jobRestartsKnown bool
}

func placeOf(job *batchv1.Job) (at place, ok bool) {
	at.replicatedJob = job.Labels[jobsetv1alpha2.ReplicatedJobNameKey]
	index, err1 := strconv.Atoi(job.Labels[jobsetv1alpha2.JobIndexKey])
	restarts, err2 := strconv.Atoi(job.Labels[jobsetv1alpha2.RestartsKey])
	jobRestarts, err3 := strconv.Atoi(job.Labels[jobsetv1alpha2.JobRestartAttemptKey])
	at.index, at.restarts, at.jobRestarts, at.jobRestartsKnown = int32(index), int32(restarts), int32(jobRestarts), err3 == nil
	return at, err1 == nil && err2 == nil
}

// meaningOf classifies a Job (docs/reference/jobset.md#child-categories).
func meaningOf(o plan.Observed, job *batchv1.Job) meaning {
	at, ok := placeOf(job)
	rj := replicatedJob(o.JobSet, at.replicatedJob)
	if !ok || rj == nil || at.index >= *rj.Replicas {
		return senseless
	}
	restarts := jobRestarts(&o.JobSet.Status, at.replicatedJob, at.index)
	switch {
	case at.restarts < o.JobSet.Status.Restarts:
		return previous
	case tracksJobs(o) && at.jobRestarts < restarts:
		return previous
	case hasCondition(job, batchv1.JobComplete):
		return succeeded
	case hasCondition(job, batchv1.JobFailed):
		return failed
	}
	return active
}

// tracksJobs reports whether single Jobs have attempts of their own.
func tracksJobs(o plan.Observed) bool {
	return o.Gates.RestartJob || jobRestartsOf(&o.JobSet.Status) > 0
}

// meaning returns the Jobs that mean something, by name.
func having(o plan.Observed, what meaning) []*batchv1.Job {
	var jobs []*batchv1.Job
	for _, job := range o.Jobs {
		if meaningOf(o, job) == what {
			jobs = append(jobs, job)
		}
	}
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	return jobs
}

func replicatedJob(js *jobsetv1alpha2.JobSet, name string) *jobsetv1alpha2.ReplicatedJob {
	i := slices.Index(replicatedJobNames(js), name)
	if i < 0 {
		return nil
	}
	return &js.Spec.ReplicatedJobs[i]
}

func countersOf(status *jobsetv1alpha2.JobSetStatus, name string) jobsetv1alpha2.ReplicatedJobStatus {
	for _, counters := range status.ReplicatedJobsStatus {
		if counters.Name == name {
			return counters
		}
	}
	return jobsetv1alpha2.ReplicatedJobStatus{}
}

func jobRestarts(status *jobsetv1alpha2.JobSetStatus, name string, index int32) int32 {
	if restarts := countersOf(status, name).JobRestarts; int(index) < len(restarts) {
		return restarts[index]
	}
	return 0
}

// count counts the Jobs of a replicatedJob (docs/reference/jobset.md#counters).
func count(o plan.Observed, name string) jobsetv1alpha2.ReplicatedJobStatus {
	counters := jobsetv1alpha2.ReplicatedJobStatus{Name: name}
	for _, job := range o.Jobs {
		if job.Labels[jobsetv1alpha2.ReplicatedJobNameKey] != name {
			continue
		}
		switch meaningOf(o, job) {
		case previous:
			// Quota must not be given back while pods of the set still run.
			counters.Active += one(!ended(job) && hasPods(job))
		case succeeded:
			counters.Succeeded++
		case failed:
			counters.Failed++
		case active:
			counters.Ready += one(isReady(job))
			stops := isSuspended(o.JobSet) || finished(&o.JobSet.Status)
			counters.Active += one(job.Status.Active > 0 || stops && hasPods(job))
			counters.Suspended += one(jobIsSuspended(job))
		}
	}
	return counters
}

// hasPods reports whether a Job has pods that run, or that are being deleted.
func hasPods(job *batchv1.Job) bool {
	return job.Status.Active+ptr.Deref(job.Status.Terminating, 0) > 0
}

func one(yes bool) int32 {
	if yes {
		return 1
	}
	return 0
}

func isReady(job *batchv1.Job) bool {
	wanted := *job.Spec.Parallelism
	if c := job.Spec.Completions; c != nil && *c < wanted {
		wanted = *c
	}
	return job.Status.Succeeded+ptr.Deref(job.Status.Ready, 0) >= wanted
}

// hasStarted reports whether all Jobs of a replicatedJob are ready or have ended (docs/reference/jobset.md#startup-order).
func hasStarted(o plan.Observed, rj *jobsetv1alpha2.ReplicatedJob) bool {
	n := count(o, rj.Name)
	return n.Ready+n.Succeeded+n.Failed == *rj.Replicas
}

// mayStart reports whether Jobs of a replicatedJob may be created and, in a set that is not suspended, run.
func mayStart(o plan.Observed, name string) bool {
	inOrder := o.JobSet.Spec.StartupPolicy.StartupPolicyOrder == jobsetv1alpha2.InOrder && !isSuspended(o.JobSet)
	for i := range o.JobSet.Spec.ReplicatedJobs {
		rj := &o.JobSet.Spec.ReplicatedJobs[i]
		if rj.Name == name {
			return !slices.ContainsFunc(rj.DependsOn, func(d jobsetv1alpha2.DependsOn) bool { return !dependencyMet(o, d) })
		}
		if inOrder && !hasStarted(o, rj) {
			return false
		}
	}
	return false
}

func dependencyMet(o plan.Observed, d jobsetv1alpha2.DependsOn) bool {
	on := replicatedJob(o.JobSet, d.Name)
	if d.Status == jobsetv1alpha2.DependencyComplete {
		return count(o, d.Name).Succeeded == *on.Replicas
	}
	return hasStarted(o, on)
}

// conditionIs reports whether a condition is there and True.
func conditionIs(status *jobsetv1alpha2.JobSetStatus, conditionType string) bool {
	c := setCondition(status, conditionType)
	return c != nil && c.Status == metav1.ConditionTrue
}

func setCondition(status *jobsetv1alpha2.JobSetStatus, conditionType string) *metav1.Condition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == conditionType {
			return &status.Conditions[i]
		}
	}
	return nil
}

func finished(status *jobsetv1alpha2.JobSetStatus) bool {
	return conditionIs(status, jobsetv1alpha2.JobSetCompleted) || conditionIs(status, jobsetv1alpha2.JobSetFailed)
}

func sortedWords(s string) string {
	words := strings.Fields(s)
	slices.Sort(words)
	return strings.Join(words, " ")
}
