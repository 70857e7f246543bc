// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"fmt"
	"strings"
)

const (
	// MaxNames is how many objects of a resource a Loss names.
	MaxNames = 5
	// jobsResource and claimsResource are what records of older servers count.
	jobsResource, claimsResource = "jobs.batch", "persistentvolumeclaims"
)

// Loss counts objects of one resource that the garbage collector would delete.
type Loss struct {
	// Resource is <resource>.<group>, and Kind the kind of the objects.
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	Count    int    `json:"count"`
	// Names are some of the objects as <namespace>/<name>, at most MaxNames.
	Names []string `json:"names,omitempty"`
}

// Losses are the objects that the garbage collector would delete if a store were served.
type Losses struct {
	// Unknown says that they could not be counted.
	Unknown bool
	// Counts has the resources of which there are any.
	Counts []Loss
}

// Losses returns what the garbage collector would delete. Records of older servers count Jobs and claims only.
func (r *Refusal) Losses() Losses {
	if r.JobsAtStake < 0 {
		return Losses{Unknown: true}
	}
	if len(r.AtStake) > 0 {
		return Losses{Counts: r.AtStake}
	}
	var l Losses
	l.Add(Loss{Resource: jobsResource, Kind: "Job", Count: r.JobsAtStake, Names: r.Jobs[:min(len(r.Jobs), MaxNames)]})
	l.Add(Loss{Resource: claimsResource, Kind: "PersistentVolumeClaim", Count: r.ClaimsAtStake})
	return l
}

// Record writes the losses into a refusal, also as older readers know them. jobs are the names of Jobs, at most MaxJobs.
func (l Losses) Record(r *Refusal, jobs []string) {
	r.JobsAtStake, r.ClaimsAtStake, r.Jobs, r.AtStake = 0, 0, nil, nil
	if l.Unknown {
		r.JobsAtStake = -1
		return
	}
	r.AtStake = l.Counts
	for _, loss := range l.Counts {
		switch loss.Resource {
		case jobsResource:
			r.JobsAtStake, r.Jobs = loss.Count, jobs
		case claimsResource:
			r.ClaimsAtStake = loss.Count
		}
	}
}

// Add adds a resource unless there are no objects of it.
func (l *Losses) Add(loss Loss) {
	if loss.Count > 0 {
		l.Counts = append(l.Counts, loss)
	}
}

// Any returns whether anything would be deleted, or may be.
func (l Losses) Any() bool { return l.Unknown || len(l.Counts) > 0 }

// One returns whether exactly one object would be deleted.
func (l Losses) One() bool { return !l.Unknown && len(l.Counts) == 1 && l.Counts[0].Count == 1 }

// String returns "24 StatefulSets (ns/a, ns/b and 22 more), 2 Jobs (ns/c, ns/d) and 12 Services". It names StatefulSets
// and Jobs, and others if there are neither.
func (l Losses) String() string {
	switch {
	case l.Unknown:
		return "an unknown number of objects"
	case len(l.Counts) == 0:
		return "nothing"
	}
	runs := false
	for _, loss := range l.Counts {
		runs = runs || loss.runs()
	}
	var parts []string
	for _, loss := range l.Counts {
		parts = append(parts, loss.text(loss.runs() || !runs))
	}
	if last := len(parts) - 1; last > 0 {
		return strings.Join(parts[:last], ", ") + " and " + parts[last]
	}
	return parts[0]
}

// runs returns whether pods are below the objects.
func (l Loss) runs() bool { return l.Kind == "Job" || l.Kind == "StatefulSet" }

func (l Loss) text(named bool) string {
	text := fmt.Sprintf("%d %ss", l.Count, l.Kind)
	if l.Count == 1 {
		text = "1 " + l.Kind
	}
	if !named || len(l.Names) == 0 {
		return text
	}
	text += " (" + strings.Join(l.Names, ", ")
	if rest := l.Count - len(l.Names); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text + ")"
}
