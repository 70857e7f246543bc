// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

// Where the scheduler chooses the domain of a Job, that of its first pod with a node is noted, once. From then on the
// Job is like one that was placed there: others keep off the domain, a restart prefers it, and pods that get no nodes
// in it make the Job move.

// unlocated returns the Jobs whose domain the scheduler chooses, and which is not known yet; none of their nodes is
// filled in. Jobs that were created without placement, by an earlier version or with the feature off, are left where
// they are: their pods may be in several domains.
func unlocated(o Observed, owned children) (out []domains.Unlocated) {
	if !placeable(o) || !domains.Lack(o.JobSet.Status.Placement) {
		return nil
	}
	for _, job := range owned.active {
		at, index := o.index.placed[job.place], job.index
		placed := job.Annotations[jobsetv1alpha2.PlacementKey] == jobsetv1alpha2.PlacementByAffinity && at.ByScheduler(index)
		if placed && job.DeletionTimestamp == nil && !jobSuspended(job.Job) && at.IsFor(index, o.jobRestarts(job.place, index)) {
			out = append(out, domains.Unlocated{Place: job.place, Index: index, UID: job.UID, Topology: at.Topology})
		}
	}
	return out
}

// askLocated asks for domains that the scheduler has chosen.
func askLocated(s state) (c changes) {
	if s.Located.Open() {
		c.plan.Asks.Unlocated = unlocated(s.Observed, s.owned)
	}
	return c
}

// locate notes the domains that the scheduler has chosen.
func locate(s state) changes {
	located := s.Located.Value().Domains
	if len(located) == 0 {
		return changes{}
	}
	jobs := unlocated(s.Observed, s.owned)
	return changes{edits: []edit{func(next *jobsetv1alpha2.JobSetStatus) {
		for _, job := range jobs {
			entry := helper.PlacementOf(next, s.JobSet.Spec.ReplicatedJobs[job.Place].Name, job.Topology)
			if at, found := located[job.UID]; found && entry != nil && int(job.Index) < len(entry.Jobs) {
				entry.Jobs[job.Index].Domain, entry.Jobs[job.Index].Nodes = at.Domain, at.Nodes
			}
		}
	}}}
}
