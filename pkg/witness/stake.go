// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"fmt"
	"strings"
)

const (
	// MaxNames is how many objects of a resource a Stake names.
	MaxNames = 5
	// jobsResource and claimsResource are what records of older servers count.
	jobsResource, claimsResource = "jobs.batch", "persistentvolumeclaims"
)

// Stake counts objects of one resource that the garbage collector would delete.
type Stake struct {
	// Resource is <resource>.<group>, and Kind the kind of the objects.
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	Count    int    `json:"count"`
	// Names are some of the objects as <namespace>/<name>, at most MaxNames.
	Names []string `json:"names,omitempty"`
}

// Stakes are the objects that the garbage collector would delete if a store were served.
type Stakes struct {
	// Unknown says that they could not be counted.
	Unknown bool
	// Counts has the resources of which there are any.
	Counts []Stake
}

// Stakes returns what is at stake. Records of older servers count Jobs and claims only.
func (r *Refusal) Stakes() Stakes {
	if r.JobsAtStake < 0 {
		return Stakes{Unknown: true}
	}
	if len(r.AtStake) > 0 {
		return Stakes{Counts: r.AtStake}
	}
	var s Stakes
	s.Add(Stake{Resource: jobsResource, Kind: "Job", Count: r.JobsAtStake, Names: r.Jobs[:min(len(r.Jobs), MaxNames)]})
	s.Add(Stake{Resource: claimsResource, Kind: "PersistentVolumeClaim", Count: r.ClaimsAtStake})
	return s
}

// Record writes what is at stake into a refusal, also as older readers know it. jobs are the names of Jobs, at most MaxJobs.
func (s Stakes) Record(r *Refusal, jobs []string) {
	r.JobsAtStake, r.ClaimsAtStake, r.Jobs, r.AtStake = 0, 0, nil, nil
	if s.Unknown {
		r.JobsAtStake = -1
		return
	}
	r.AtStake = s.Counts
	for _, stake := range s.Counts {
		switch stake.Resource {
		case jobsResource:
			r.JobsAtStake, r.Jobs = stake.Count, jobs
		case claimsResource:
			r.ClaimsAtStake = stake.Count
		}
	}
}

// Add adds a resource unless there are no objects of it.
func (s *Stakes) Add(stake Stake) {
	if stake.Count > 0 {
		s.Counts = append(s.Counts, stake)
	}
}

// Any returns whether anything is at stake, or may be.
func (s Stakes) Any() bool { return s.Unknown || len(s.Counts) > 0 }

// One returns whether exactly one object is at stake.
func (s Stakes) One() bool { return !s.Unknown && len(s.Counts) == 1 && s.Counts[0].Count == 1 }

// String returns "24 StatefulSets (ns/a, ns/b and 22 more), 2 Jobs (ns/c, ns/d) and 12 Services". It names StatefulSets
// and Jobs, and others if there are neither.
func (s Stakes) String() string {
	switch {
	case s.Unknown:
		return "an unknown number of objects"
	case len(s.Counts) == 0:
		return "nothing"
	}
	runs := false
	for _, stake := range s.Counts {
		runs = runs || stake.runs()
	}
	var parts []string
	for _, stake := range s.Counts {
		parts = append(parts, stake.text(stake.runs() || !runs))
	}
	if last := len(parts) - 1; last > 0 {
		return strings.Join(parts[:last], ", ") + " and " + parts[last]
	}
	return parts[0]
}

// runs returns whether pods are below the objects.
func (s Stake) runs() bool { return s.Kind == "Job" || s.Kind == "StatefulSet" }

func (s Stake) text(named bool) string {
	text := fmt.Sprintf("%d %ss", s.Count, s.Kind)
	if s.Count == 1 {
		text = "1 " + s.Kind
	}
	if !named || len(s.Names) == 0 {
		return text
	}
	text += " (" + strings.Join(s.Names, ", ")
	if rest := s.Count - len(s.Names); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text + ")"
}
