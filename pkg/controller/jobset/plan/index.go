// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// index finds the parts of a set by name. Without it a decision about many replicatedJobs would search their list for each
// of the Jobs.
type index struct {
	// places are the positions of the replicatedJobs in the spec, by name.
	places map[string]int
	// stored are the entries of the stored status, by position in the spec; zero entries where there are none.
	stored []jobsetv1alpha2.ReplicatedJobStatus
	// tracksJobs tells that Jobs have attempts of their own.
	tracksJobs bool
	// placed are the domains of Jobs, by position in the spec.
	placed []domains.Jobs
	// groups are the groups of the pods of replicatedJobs, by name; nil if the set has none.
	groups map[string]gang.Names
}

// indexed returns the snapshot with its index.
func indexed(o Observed) Observed {
	replicatedJobs := o.JobSet.Spec.ReplicatedJobs
	ix := &index{
		places: make(map[string]int, len(replicatedJobs)), stored: make([]jobsetv1alpha2.ReplicatedJobStatus, len(replicatedJobs)),
		tracksJobs: tracksJobs(o), placed: make([]domains.Jobs, len(replicatedJobs)),
		groups: gang.NamesOf(o.JobSet, o.Grouped),
	}
	for i := range replicatedJobs {
		if _, found := ix.places[replicatedJobs[i].Name]; !found {
			ix.places[replicatedJobs[i].Name] = i
		}
	}
	stored := byName(o.JobSet.Status.ReplicatedJobsStatus)
	for i := range replicatedJobs {
		ix.stored[i] = entryOf(stored, replicatedJobs[i].Name)
		ix.placed[i] = domainsOf(o, &replicatedJobs[i])
	}
	o.index = ix
	return o
}

// byName returns the entries of a status by the name of their replicatedJob.
func byName(counts []jobsetv1alpha2.ReplicatedJobStatus) map[string]*jobsetv1alpha2.ReplicatedJobStatus {
	out := make(map[string]*jobsetv1alpha2.ReplicatedJobStatus, len(counts))
	for i := range counts {
		if _, found := out[counts[i].Name]; !found {
			out[counts[i].Name] = &counts[i]
		}
	}
	return out
}

// entryOf returns the entry of the name; a zero one if there is none.
func entryOf(counts map[string]*jobsetv1alpha2.ReplicatedJobStatus, name string) jobsetv1alpha2.ReplicatedJobStatus {
	if count := counts[name]; count != nil {
		return *count
	}
	return jobsetv1alpha2.ReplicatedJobStatus{Name: name}
}

// replicatedJob returns the replicatedJob of the name and its position in the spec; nil if there is none.
func (o *Observed) replicatedJob(name string) (*jobsetv1alpha2.ReplicatedJob, int) {
	i, found := o.index.places[name]
	if !found {
		return nil, 0
	}
	return &o.JobSet.Spec.ReplicatedJobs[i], i
}

// jobRestarts returns how often a single Job of the replicatedJob at the position was restarted.
func (o *Observed) jobRestarts(place int, index int32) int32 {
	return restartsOf(o.index.stored[place].JobRestarts, index)
}

func restartsOf(restarts []int32, index int32) int32 {
	if int(index) >= len(restarts) {
		return 0
	}
	return restarts[index]
}
