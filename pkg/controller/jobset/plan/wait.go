// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "k8s.io/apimachinery/pkg/util/sets"

// What Jobs wait for before they are created or resumed is a value: each subject returns which Jobs wait for it, and union joins
// these. Nothing changes the union afterwards, so that no subject can start a Job that waits for another one.

// awaited is what Jobs wait for.
type awaited uint8

const (
	// awaitsDependencies means the replicatedJobs that their replicatedJob depends on.
	awaitsDependencies awaited = iota
	// awaitsTurn means the replicatedJobs before their own in an ordered start.
	awaitsTurn
	// awaitsDomain means a domain that they have to themselves.
	awaitsDomain
	// awaitsGroup means the group of their pods.
	awaitsGroup
)

// wait is which Jobs wait, and why.
type wait struct {
	reason awaited
	// all means that all Jobs wait.
	all bool
	// replicatedJobs are the positions in the spec of replicatedJobs all of whose Jobs wait, and jobs are the names of single Jobs.
	replicatedJobs []int
	jobs           []string
	// changes are what else the subject wants, such as a condition that says so.
	changes changes
}

// awaits return what Jobs wait for.
func awaits() []func(state) wait {
	return []func(state) wait{awaitDependencies, awaitTurn, awaitDomain, awaitGroup}
}

// waits is which Jobs wait, for any reason.
type waits struct {
	// replicatedJobs has by position in the spec whether all Jobs of a replicatedJob wait, and jobs are the names of others that do.
	replicatedJobs []bool
	jobs           sets.Set[string]
}

// union joins what Jobs of a set wait for.
func union(o Observed, all ...wait) waits {
	w := waits{replicatedJobs: make([]bool, len(o.JobSet.Spec.ReplicatedJobs))}
	for _, one := range all {
		for i := range w.replicatedJobs {
			w.replicatedJobs[i] = w.replicatedJobs[i] || one.all
		}
		for _, place := range one.replicatedJobs {
			w.replicatedJobs[place] = true
		}
		if len(one.jobs) > 0 {
			w.jobs = w.jobs.Union(sets.New(one.jobs...))
		}
	}
	return w
}

// job returns whether a Job of the replicatedJob at the position waits.
func (w waits) job(place int, name string) bool { return w.replicatedJobs[place] || w.jobs.Has(name) }

// resumes reports whether a Job is to be resumed.
func (w waits) resumes(o *Observed, job child) bool {
	return !suspended(o.JobSet) && job.DeletionTimestamp == nil && jobSuspended(job.Job) && !suspendedByOthers(o, job.Job) &&
		!w.job(job.place, job.Name)
}
