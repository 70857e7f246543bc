// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

// A Job whose pods get no nodes in its domain moves to another one: the next domain is stored together with the UID of
// the Job, which then counts as one of an earlier attempt, and is deleted and created once more. No attempt ends, and
// no restart is counted.

const reasonJobMoved = "JobMoved"

// stuckJobs returns the Jobs whose pods get no nodes in their domain, by name.
func stuckJobs(o Observed, owned children) (out []domains.Stuck) {
	if len(o.Waiting) == 0 || !placeable(o) {
		return nil
	}
	for _, job := range owned.active {
		waiting, found := o.Waiting[job.UID]
		if !found || !starting(job.Job) {
			continue
		}
		at, index := o.index.placed[job.place], job.index
		if at.Domain(index) != "" && at.IsFor(index, o.jobRestarts(job.place, index)) && !at.At.Jobs[index].Ready {
			out = append(out, domains.Stuck{
				Waiting: waiting, Place: job.place, Index: index, UID: job.UID, Topology: at.Topology, At: at.At.Jobs[index],
			})
		}
	}
	if len(out) == 0 {
		return nil
	}
	runs := running(&o, owned)
	for i := range out {
		out[i].Running = runs
	}
	return out
}

// askMoves asks where Jobs go whose pods get no nodes.
func askMoves(s state) (c changes) {
	if s.Moving.Open() {
		c.plan.Asks.Stuck = stuckJobs(s.Observed, s.owned)
	}
	return c
}

// starting reports whether pods of a Job are still to become ready.
func starting(job *batchv1.Job) bool {
	return job.DeletionTimestamp == nil && !jobSuspended(job) && !allPodsReady(job) &&
		helper.TrueJobCondition(job, batchv1.JobFailureTarget) == nil
}

// moveJob stores that a Job goes to another domain.
func moveJob(s state) changes {
	m := s.Moving.Value().Move
	if m == nil || s.Placed.Value().Placement != nil {
		return changes{} // one change of the placement at a time
	}
	rj := &s.JobSet.Spec.ReplicatedJobs[m.Place]
	entry := helper.PlacementOf(s.next, rj.Name, m.Topology)
	if entry == nil || int(m.Index) >= len(entry.Jobs) || entry.Jobs[m.Index].Domain != m.At.Domain {
		return changes{}
	}
	at := m.Placement(s.Now)
	note := fmt.Sprintf("job %q leaves %s %q for %q: %s", helper.JobName(s.JobSet.Name, rj.Name, m.Index), m.Topology, m.At.Domain, m.Domain,
		m.Cause)
	if m.Reason != "" {
		note += ": " + m.Reason
	}
	return changes{
		commits: true,
		edits: []edit{func(next *jobsetv1alpha2.JobSetStatus) {
			helper.PlacementOf(next, rj.Name, m.Topology).Jobs[m.Index] = at
		}},
		events: []Event{{Type: corev1.EventTypeWarning, Reason: reasonJobMoved, Note: note}},
	}
}

// leftDomain reports whether a Job has left its domain, so that it is to be created once more in another one. A Job that was done
// before that was known stays.
func leftDomain(o *Observed, job child) bool {
	at := o.index.placed[job.place]
	if at.At == nil || int(job.index) >= len(at.At.Jobs) {
		return false
	}
	moves := at.At.Jobs[job.index].Moves
	return moves != nil && moves.ReplacedJob == job.UID && helper.TrueJobCondition(job.Job, batchv1.JobComplete) == nil
}

// notePlaced notes which Jobs have had all of their pods ready where they are. They do not move any more.
func notePlaced(s state) (c changes) {
	if s.next.Placement == nil || !s.Gates.ExclusivePlacement {
		return changes{}
	}
	for _, job := range s.owned.active {
		at, index := s.index.placed[job.place], job.index
		news := at.Domain(index) != "" && !at.At.Jobs[index].Ready && at.IsFor(index, s.jobRestarts(job.place, index))
		if news && !jobSuspended(job.Job) && job.DeletionTimestamp == nil && allPodsReady(job.Job) {
			c.edits = append(c.edits, setReady(replicatedJobOf(job.Job), at.Topology, index, true))
		}
	}
	return c
}

// unpin lets the suspended Jobs of a set move that is not suspended, such as one that was resumed: pods of other Jobs may take the domain
// before the pods of these Jobs come back. That is stored before the Jobs are resumed.
func unpin(s state) (c changes) {
	if s.next.Placement == nil || !placeable(s.Observed) {
		return changes{}
	}
	for _, job := range s.owned.active {
		at, index := s.index.placed[job.place], job.index
		if jobSuspended(job.Job) && at.Domain(index) != "" && at.At.Jobs[index].Ready {
			c.edits = append(c.edits, setReady(replicatedJobOf(job.Job), at.Topology, index, false))
		}
	}
	c.commits = len(c.edits) > 0
	return c
}

func setReady(replicatedJob, topology string, index int32, ready bool) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) {
		if entry := helper.PlacementOf(next, replicatedJob, topology); entry != nil && int(index) < len(entry.Jobs) {
			entry.Jobs[index].Ready = ready
		}
	}
}
