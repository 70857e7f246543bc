// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package domains

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Unplaced are Jobs of one replicatedJob that may be neither created nor resumed before they have a domain.
type Unplaced struct {
	// Place is the place of the replicatedJob in the spec.
	Place int
	// Topology is the label of nodes whose values are the domains.
	Topology string
	// Indexes are the indexes of the Jobs, in order, and Restarts how often each of them alone was restarted.
	Indexes, Restarts []int32
	// Running are Jobs of the whole set, the same for each replicatedJob.
	Running []Running
}

// Running is a Job that runs in a domain which the stored placement does not have for it.
type Running struct {
	// Place is the place of the replicatedJob in the spec, and Index that of the Job.
	Place int
	Index int32
	// Topology is the label of nodes whose values are the domains, and Domain the value that the pods ask for.
	Topology, Domain string
}

// Placed is what became of the question for the domains of all unplaced Jobs.
type Placed struct {
	// Placement is the next status.placement; nil while the set waits.
	Placement *jobsetv1alpha2.Placement
	// Reason and Message say why the set waits, or why the scheduler chooses domains; empty if each Job has one.
	Reason, Message string
}

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
	// Running are other Jobs of the set.
	Running []Running
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

// Unlocated is a Job whose domain the scheduler chooses, and which is not known yet.
type Unlocated struct {
	// Place is the place of the replicatedJob in the spec, and Index that of the Job.
	Place int
	Index int32
	// UID is the UID of the Job.
	UID types.UID
	// Topology is the label of nodes whose values are the domains.
	Topology string
	// Node is one on which a pod of the Job is.
	Node string
}

// Located are domains that the scheduler has chosen.
type Located struct {
	// Domains are the domains of Jobs, by their UID.
	Domains map[types.UID]jobsetv1alpha2.JobPlacement
	// After is when to ask again even if nothing happens; 0 for never.
	After time.Duration
}

// Placement returns where the Job is once it has moved. It remembers the last domains that it has left.
func (m *Move) Placement(now metav1.Time) jobsetv1alpha2.JobPlacement {
	var left []string
	if m.At.Moves != nil {
		left = m.At.Moves.Left
	}
	left = append(slices.Clone(left), m.At.Domain)
	return jobsetv1alpha2.JobPlacement{
		Domain: m.Domain, Nodes: m.Nodes, Restarts: m.At.Restarts,
		Moves: &jobsetv1alpha2.JobMoves{Left: left[max(0, len(left)-maxLeft):], LastTime: &now, ReplacedJob: m.UID},
	}
}

// ForEach calls f for the place of each Job.
func ForEach(at *jobsetv1alpha2.Placement, f func(*jobsetv1alpha2.JobPlacement)) {
	if at == nil {
		return
	}
	for i := range at.ReplicatedJobs {
		for j := range at.ReplicatedJobs[i].Jobs {
			f(&at.ReplicatedJobs[i].Jobs[j])
		}
	}
}

// Lack reports whether a Job has no domain.
func Lack(at *jobsetv1alpha2.Placement) (lacks bool) {
	ForEach(at, func(job *jobsetv1alpha2.JobPlacement) { lacks = lacks || job.Domain == "" })
	return lacks
}

// Unlocate removes from a status the domains that the scheduler has chosen since another one.
func Unlocate(status, since *jobsetv1alpha2.JobSetStatus) {
	if status.Placement == nil || since.Placement == nil || len(status.Placement.ReplicatedJobs) != len(since.Placement.ReplicatedJobs) {
		return
	}
	for i := range since.Placement.ReplicatedJobs {
		was, is := since.Placement.ReplicatedJobs[i].Jobs, status.Placement.ReplicatedJobs[i].Jobs
		for index := range min(len(was), len(is)) {
			if was[index].Domain == "" {
				is[index].Domain, is[index].Nodes = "", 0
			}
		}
	}
}
