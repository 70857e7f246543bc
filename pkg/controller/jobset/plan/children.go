// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// children are the Jobs of a set by what they mean for it, each list sorted by name.
type children struct {
	// names are the names of all owned Jobs, whatever they mean: no other Job can have them.
	names sets.Set[string]
	// previous belong to an earlier attempt.
	previous []*batchv1.Job
	// succeeded, failed and active belong to the current attempt.
	succeeded, failed []*batchv1.Job
	active            []child
	// failureTarget are the active Jobs that are bound to fail once their pods have ended.
	failureTarget []*batchv1.Job
	// problems tell of Jobs that are in no list because their labels make no sense.
	problems []string
	// counts are the numbers of Jobs of each replicatedJob, in the order of the spec.
	counts []jobsetv1alpha2.ReplicatedJobStatus
}

// child is a Job with its place in the set.
type child struct {
	*batchv1.Job
	// place is the position of its replicatedJob in the spec, and index that of the Job.
	place int
	index int32
}

// jobsOf returns the Jobs without their places.
func jobsOf(all []child) []*batchv1.Job {
	jobs := make([]*batchv1.Job, len(all))
	for i := range all {
		jobs[i] = all[i].Job
	}
	return jobs
}

// inSpecOrder returns the Jobs in the order of their replicatedJobs in the spec, those of one replicatedJob in the order that they have.
func inSpecOrder(js *jobsetv1alpha2.JobSet, all []child) []child {
	next := make([]int, len(js.Spec.ReplicatedJobs)+1)
	for i := range all {
		next[all[i].place+1]++
	}
	for place := 1; place < len(next); place++ {
		next[place] += next[place-1]
	}
	out := make([]child, len(all))
	for _, job := range all {
		out[next[job.place]] = job
		next[job.place]++
	}
	return out
}

// anyActive returns whether the condition holds for an active Job.
func (owned *children) anyActive(condition func(*batchv1.Job) bool) bool {
	return slices.ContainsFunc(owned.active, func(c child) bool { return condition(c.Job) })
}

// classify sorts the Jobs by meaning (docs/reference/jobset.md#child-categories). One Job with bad labels does not stop
// the whole set, as it does upstream: it is left alone, holds its name, and counts nowhere.
func classify(o Observed) children {
	owned := children{names: make(sets.Set[string], len(o.Jobs))}
	jobs := slices.Clone(o.Jobs)
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	for _, job := range jobs {
		owned.names.Insert(job.Name)
		place, index, err := placeOf(&o, job)
		var previous bool
		if err == nil {
			previous, err = isPrevious(&o, child{job, place, index})
		}
		switch {
		case err != nil:
			owned.problems = append(owned.problems, fmt.Sprintf("job %q is ignored: %v", job.Name, err))
		case previous:
			owned.previous = append(owned.previous, job)
		case helper.TrueJobCondition(job, batchv1.JobComplete) != nil:
			owned.succeeded = append(owned.succeeded, job)
		case helper.TrueJobCondition(job, batchv1.JobFailed) != nil:
			owned.failed = append(owned.failed, job)
		default:
			owned.active = append(owned.active, child{job, place, index})
			if helper.TrueJobCondition(job, batchv1.JobFailureTarget) != nil {
				owned.failureTarget = append(owned.failureTarget, job)
			}
		}
	}
	owned.counts = countJobs(o, owned)
	return owned
}

// isPrevious reports whether the Job belongs to an attempt before the current one, of the set or of this single Job, or to
// a domain that it has left or should not be in.
func isPrevious(o *Observed, job child) (bool, error) {
	attempt, err := intLabel(job.Job, jobsetv1alpha2.RestartsKey)
	if err != nil {
		return false, err
	}
	if attempt < o.JobSet.Status.Restarts {
		return true, nil
	}
	if leftDomain(o, job) || elsewhere(o, job) {
		return true, nil
	}
	if !o.index.tracksJobs {
		return false, nil
	}
	// A Job that was created before the feature was on is in its first attempt. Upstream takes it for current for ever, so
	// that one failure of it is counted again and again.
	var jobAttempt int32
	if _, found := job.Labels[jobsetv1alpha2.JobRestartAttemptKey]; found {
		if jobAttempt, err = intLabel(job.Job, jobsetv1alpha2.JobRestartAttemptKey); err != nil {
			return false, err
		}
	}
	return jobAttempt < o.jobRestarts(job.place, job.index), nil
}

// placeOf returns the position of the replicatedJob of a Job and its index, or what is wrong with the labels that say so.
func placeOf(o *Observed, job *batchv1.Job) (place int, index int32, err error) {
	rj, place := o.replicatedJob(replicatedJobOf(job))
	if rj == nil {
		return 0, 0, fmt.Errorf("label %s must be the name of a replicatedJob, not %q", jobsetv1alpha2.ReplicatedJobNameKey, replicatedJobOf(job))
	}
	index, err = intLabel(job, jobsetv1alpha2.JobIndexKey)
	if err == nil && index >= helper.Replicas(rj) {
		err = fmt.Errorf("label %s must be less than the %d replicas, not %d", jobsetv1alpha2.JobIndexKey, helper.Replicas(rj), index)
	}
	return place, index, err
}

func intLabel(job *batchv1.Job, key string) (int32, error) {
	value, found := job.Labels[key]
	if !found {
		return 0, fmt.Errorf("label %s is missing", key)
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("label %s must be a number of 0 or more, not %q", key, value)
	}
	return int32(n), nil
}

func jobSuspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// jobIndex returns the index of a Job that classify let through.
func jobIndex(job *batchv1.Job) int32 {
	index, _ := intLabel(job, jobsetv1alpha2.JobIndexKey)
	return index
}

func replicatedJobOf(job *batchv1.Job) string { return job.Labels[jobsetv1alpha2.ReplicatedJobNameKey] }

func refTo(job metav1.Object) JobRef { return JobRef{Name: job.GetName(), UID: job.GetUID()} }
