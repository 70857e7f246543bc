// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Where the scheduler chooses the domain of a Job, that of its first pod with a node is noted, once. From then on the
// Job is like one that was placed there: others keep off the domain, a restart prefers it, and pods that get no nodes
// in it make the Job move.

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

// UnlocatedJobs returns the Jobs whose domain the scheduler chooses, and which is not known yet; none of their nodes is
// filled in. Jobs that were created without placement, by an earlier version or with the feature off, are left where
// they are: their pods may be in several domains.
func UnlocatedJobs(o Observed) (out []Unlocated) {
	if !placeable(o) || !lacksDomain(o.JobSet.Status.Placement) {
		return nil
	}
	o = indexed(o)
	for _, job := range classify(o).active {
		_, place := o.replicatedJob(replicatedJobOf(job))
		index := jobIndex(job)
		at := o.index.placed[place]
		placed := job.Annotations[jobsetv1alpha2.PlacementKey] == jobsetv1alpha2.PlacementByAffinity && at.byScheduler(index)
		if placed && job.DeletionTimestamp == nil && !jobSuspended(job) && at.isFor(index, o.jobRestarts(place, index)) {
			out = append(out, Unlocated{Place: place, Index: index, UID: job.UID, Topology: at.topology})
		}
	}
	return out
}

func lacksDomain(at *jobsetv1alpha2.Placement) (lacks bool) {
	forEachPlaced(at, func(job *jobsetv1alpha2.JobPlacement) { lacks = lacks || job.Domain == "" })
	return lacks
}

// locate notes the domains that the scheduler has chosen.
func (b *statusBuilder) locate() {
	if len(b.o.Located.Domains) == 0 {
		return
	}
	for _, job := range UnlocatedJobs(b.o) {
		entry := helper.PlacementOf(b.next, b.o.JobSet.Spec.ReplicatedJobs[job.Place].Name, job.Topology)
		if at, found := b.o.Located.Domains[job.UID]; found && entry != nil && int(job.Index) < len(entry.Jobs) {
			entry.Jobs[job.Index].Domain, entry.Jobs[job.Index].Nodes = at.Domain, at.Nodes
		}
	}
}

// unlocate removes from a status the domains that the scheduler has chosen since another one.
func unlocate(status, since *jobsetv1alpha2.JobSetStatus) {
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
