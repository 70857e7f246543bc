// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

// A Job can run in another domain than its set says: a request that creates or resumes it for an earlier placement may arrive after a
// suspension has ended that placement, and another Job of the set may have the domain by then. A Job that has done nothing yet is created
// once more where it belongs. One that works keeps its domain, and the status follows it: work counts for more than places.

// strayedTo returns the domain in which a Job runs if its set did not choose it; empty if it did, or if the Job has no domain.
func strayedTo(o *Observed, job child) string {
	at := o.index.placed[job.place]
	domain := job.Spec.Template.Spec.NodeSelector[at.Topology]
	if domain == "" || suspended(o.JobSet) || jobSuspended(job.Job) || jobEnded(job.Job) {
		return ""
	}
	chosen := at.Domain(job.index)
	if !hasPlace(o, job) {
		// A Job from before the feature was on runs where the set itself says.
		chosen = o.JobSet.Spec.ReplicatedJobs[job.place].Template.Spec.Template.Spec.NodeSelector[at.Topology]
	}
	if domain == chosen {
		return ""
	}
	return domain
}

// hasPlace reports whether the stored placement is about the present attempt of a Job.
func hasPlace(o *Observed, job child) bool {
	return o.index.placed[job.place].IsFor(job.index, o.jobRestarts(job.place, job.index))
}

// running returns the Jobs that run in a domain which the stored placement does not have for them, as their own node selectors
// say. Other Jobs of the set keep off these domains even if no cache shows the pods: pods of one set do not repel each other.
func running(o *Observed, owned children) (out []domains.Running) {
	for _, job := range owned.active {
		at := o.index.placed[job.place]
		domain := job.Spec.Template.Spec.NodeSelector[at.Topology]
		if domain != "" && mayRun(job.Job) && !(hasPlace(o, job) && at.Domain(job.index) == domain) {
			out = append(out, domains.Running{Place: job.place, Index: job.index, Topology: at.Topology, Domain: domain})
		}
	}
	return out
}

// works reports whether a pod of the Job is ready or has succeeded, or all pods were ready.
func works(o *Observed, job child) bool {
	return job.Status.Succeeded+ptr.Deref(job.Status.Ready, 0) > 0 ||
		hasPlace(o, job) && o.index.placed[job.place].At.Jobs[job.index].Ready
}

// elsewhere reports whether a Job is to be created once more because it runs where it does not belong.
func elsewhere(o *Observed, job child) bool { return strayedTo(o, job) != "" && !works(o, job) }

// followJob stores where a Job runs that works in another domain than its set says. Jobs that were to run there and have not run get the
// domain that it leaves to them. If two Jobs work in one domain, it is too late for that.
func followJob(s state) changes {
	if s.next.Placement == nil || !placeable(s.Observed) {
		return changes{}
	}
	type domain struct{ topology, name string }
	working := map[domain]int{}
	for _, job := range s.owned.active {
		if topology := s.index.placed[job.place].Topology; topology != "" && works(&s.Observed, job) {
			working[domain{topology, job.Spec.Template.Spec.NodeSelector[topology]}]++
		}
	}
	for _, job := range s.owned.active {
		at := s.index.placed[job.place]
		to := strayedTo(&s.Observed, job)
		if to == "" || job.DeletionTimestamp != nil || !hasPlace(&s.Observed, job) || working[domain{at.Topology, to}] != 1 {
			continue
		}
		return changes{commits: true, edits: []edit{exchange(job, at.Topology, at.Domain(job.index), to)}}
	}
	return changes{}
}

// exchange notes that a Job has gone from one domain to the other, and gives each Job that has not run the one in place of the other.
func exchange(follows child, topology, from, to string) edit {
	return func(next *jobsetv1alpha2.JobSetStatus) {
		for i := range next.Placement.ReplicatedJobs {
			entry := &next.Placement.ReplicatedJobs[i]
			for index := range entry.Jobs {
				switch place := &entry.Jobs[index]; {
				case entry.TopologyKey != topology:
				case entry.Name == replicatedJobOf(follows.Job) && index == int(follows.index):
					place.Domain, place.Nodes, place.Ready = to, 0, false
				case place.Ready || place.Domain == "":
				case place.Domain == to:
					place.Domain, place.Nodes = from, 0
				case place.Domain == from:
					place.Domain, place.Nodes = to, 0
				}
			}
		}
	}
}
