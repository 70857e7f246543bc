// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// A Job whose pods get no nodes in its domain moves to another one: the next domain is stored together with the UID of
// the Job, which then counts as one of an earlier attempt, and is deleted and created once more. No attempt ends, and
// no restart is counted.

const reasonJobMoved = "JobMoved"

// maxLeft is how many of the domains that a Job has left are kept.
const maxLeft = 8

// Waiting are pods of a Job for which the scheduler finds no node.
type Waiting struct {
	// Since is since when it has found none for one of them.
	Since time.Time
	// Nominated means that preemption is making room for one of them.
	Nominated bool
	// Reason is why one of them does not fit, in the words of the scheduler.
	Reason string
}

// Stuck is a Job whose pods get no nodes in its domain, and were never all ready there.
type Stuck struct {
	Waiting
	// Place is the place of the replicatedJob in the spec, and Index that of the Job.
	Place int
	Index int32
	// UID is the UID of the Job.
	UID types.UID
	// Topology is the label of nodes whose values are the domains.
	Topology string
	// At is where the Job is.
	At jobsetv1alpha2.JobPlacement
}

// Move is a Job that goes to another domain.
type Move struct {
	Stuck
	// Domain is where it goes, and Nodes how many nodes its pods can use there.
	Domain string
	Nodes  int32
	// Cause is why it goes, for an event.
	Cause string
}

// Moving is what became of the question where stuck Jobs go.
type Moving struct {
	// Move is the Job that goes now; nil if none does.
	Move *Move
	// After is when to ask again even if nothing happens; 0 for never.
	After time.Duration
}

// StuckJobs returns the Jobs whose pods get no nodes in their domain, by name.
func StuckJobs(o Observed) (out []Stuck) {
	if len(o.Waiting) == 0 || !placeable(o) {
		return nil
	}
	o = indexed(o)
	for _, job := range classify(o).active {
		waiting, found := o.Waiting[job.UID]
		if !found || !starting(job) {
			continue
		}
		_, place := o.replicatedJob(replicatedJobOf(job))
		index := jobIndex(job)
		if at := o.index.placed[place]; at.domain(index) != "" && at.isFor(index, o.jobRestarts(place, index)) && !at.at.Jobs[index].Ready {
			out = append(out, Stuck{Waiting: waiting, Place: place, Index: index, UID: job.UID, Topology: at.topology, At: at.at.Jobs[index]})
		}
	}
	return out
}

// starting reports whether pods of a Job are still to become ready.
func starting(job *batchv1.Job) bool {
	return job.DeletionTimestamp == nil && !jobSuspended(job) && !allPodsReady(job) &&
		helper.TrueJobCondition(job, batchv1.JobFailureTarget) == nil
}

// move stores that a Job goes to another domain, and reports whether one does.
func (b *statusBuilder) move() bool {
	m := b.o.Moving.Move
	if m == nil || b.o.Placed != nil && b.o.Placed.Placement != nil {
		return false // one change of the placement at a time
	}
	rj := &b.o.JobSet.Spec.ReplicatedJobs[m.Place]
	entry := helper.PlacementOf(b.next, rj.Name, m.Topology)
	if entry == nil || int(m.Index) >= len(entry.Jobs) || entry.Jobs[m.Index].Domain != m.At.Domain {
		return false
	}
	var left []string
	if m.At.Moves != nil {
		left = m.At.Moves.Left
	}
	left = append(slices.Clone(left), m.At.Domain)
	entry.Jobs[m.Index] = jobsetv1alpha2.JobPlacement{
		Domain: m.Domain, Nodes: m.Nodes, Restarts: m.At.Restarts,
		Moves: &jobsetv1alpha2.JobMoves{Left: left[max(0, len(left)-maxLeft):], LastTime: b.o.Now.DeepCopy(), ReplacedJob: m.UID},
	}
	note := fmt.Sprintf("job %q leaves %s %q for %q: %s", helper.JobName(b.o.JobSet.Name, rj.Name, m.Index), m.Topology, m.At.Domain, m.Domain,
		m.Cause)
	if m.Reason != "" {
		note += ": " + m.Reason
	}
	b.events = append(b.events, Event{Type: corev1.EventTypeWarning, Reason: reasonJobMoved, Note: note})
	return true
}

// leftDomain reports whether a Job has left its domain, so that it is to be created once more in another one. A Job that was done
// before that was known stays.
func leftDomain(o Observed, place int, index int32, job *batchv1.Job) bool {
	at := o.index.placed[place]
	if at.at == nil || int(index) >= len(at.at.Jobs) {
		return false
	}
	moves := at.at.Jobs[index].Moves
	return moves != nil && moves.ReplacedJob == job.UID && helper.TrueJobCondition(job, batchv1.JobComplete) == nil
}

// notePlaced notes which Jobs have had all of their pods ready where they are. They do not move any more.
func (b *statusBuilder) notePlaced(owned children) {
	if b.next.Placement == nil || !b.o.Gates.ExclusivePlacement {
		return
	}
	for _, job := range owned.active {
		rj, place := b.o.replicatedJob(replicatedJobOf(job))
		at, index := b.o.index.placed[place], jobIndex(job)
		news := at.domain(index) != "" && !at.at.Jobs[index].Ready && at.isFor(index, b.o.jobRestarts(place, index))
		if news && !jobSuspended(job) && job.DeletionTimestamp == nil && allPodsReady(job) {
			helper.PlacementOf(b.next, rj.Name, at.topology).Jobs[index].Ready = true
		}
	}
}

// forEachPlaced calls f for the place of each Job.
func forEachPlaced(at *jobsetv1alpha2.Placement, f func(*jobsetv1alpha2.JobPlacement)) {
	if at == nil {
		return
	}
	for i := range at.ReplicatedJobs {
		for j := range at.ReplicatedJobs[i].Jobs {
			f(&at.ReplicatedJobs[i].Jobs[j])
		}
	}
}
