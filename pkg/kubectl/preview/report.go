// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"
)

// Report is what a manifest would create and change. Its JSON form is what -o json prints.
type Report struct {
	// Refused reports that not all of it would be accepted and run.
	Refused bool `json:"refused"`
	// Changed reports that something would be created or changed.
	Changed bool `json:"changed"`
	// Sets are the objects of the manifest, in its order.
	Sets []View `json:"sets"`
}

// Set is what one JobSet would create, or change if it exists.
type Set struct {
	Object
	// Jobs and Pods are how many there are when all of the set runs.
	Jobs           int             `json:"jobs"`
	Pods           int             `json:"pods"`
	ReplicatedJobs []ReplicatedJob `json:"replicatedJobs,omitempty"`
	// Service is the headless one for DNS names.
	Service *Child  `json:"service,omitempty"`
	Claims  []Child `json:"claims,omitempty"`
	// Placement is what would become of Jobs with exclusive placement. Absent if the set has none.
	Placement *Placement `json:"placement,omitempty"`
	// Scheduling are the groups of pods for the scheduler. Absent if the set asks for none.
	Scheduling *Scheduling `json:"scheduling,omitempty"`
	// Quota has one entry for each limit that the set counts towards.
	Quota []QuotaLine `json:"quota,omitempty"`
}

// ReplicatedJob is what a replicatedJob would create. Names are patterns: w-[0-3] stands for w-0 to w-3, and xxxxx for five
// random characters.
type ReplicatedJob struct {
	Name string `json:"name"`
	// After are the replicatedJobs that it waits for, with the state, like init:Complete.
	After    []string `json:"after,omitempty"`
	Jobs     int      `json:"jobs"`
	JobNames string   `json:"jobNames,omitempty"`
	// TakenNames are the names that other Jobs have. The set would wait until they are gone.
	TakenNames string `json:"takenNames,omitempty"`
	// Pods is the number of all its pods that run at a time.
	Pods     int    `json:"pods"`
	PodNames string `json:"podNames,omitempty"`
	// HostNames are the DNS names of the pods within the namespace.
	HostNames string `json:"hostNames,omitempty"`
	// Job and Pod are the verdicts of the cluster on one of each.
	Job *Verdict `json:"job,omitempty"`
	Pod *Verdict `json:"pod,omitempty"`
}

// Child is a Service or a volume claim.
type Child struct {
	Name string `json:"name"`
	// Exists reports that there is one of this name, which the set uses as it is.
	Exists  bool    `json:"exists,omitempty"`
	Verdict Verdict `json:"verdict"`
}

// Answer is what a server says to the question whether it would create an object.
type Answer string

const (
	// Accepted is that the object would be created.
	Accepted Answer = "Accepted"
	// Refused is that it would not.
	Refused Answer = "Refused"
	// Unknown is that the question could not be asked, which the user's own rights may not allow.
	Unknown Answer = "Unknown"
)

// Verdict is the answer of a server about one object.
type Verdict struct {
	Answer Answer `json:"answer"`
	// Problems are the causes of a refusal, with the field of the object if there is one, or why it could not be asked.
	Problems []string `json:"problems,omitempty"`
	// Warnings are the warnings that came with the answer.
	Warnings []string `json:"warnings,omitempty"`
}

// QuotaLine is one limit of a quota of the namespace.
type QuotaLine struct {
	Quota    string `json:"quota"`
	Resource string `json:"resource"`
	// Adds is what the set counts; Used what counts already, with the sets before it in the manifest; Hard the limit.
	Adds string `json:"adds"`
	Used string `json:"used"`
	Hard string `json:"hard"`
	// Short is by how much the limit is too low; empty when the set fits.
	Short string `json:"short,omitempty"`
}

// Refused implements View.
func (s *Set) Refused() bool {
	bad := s.Verdict.Answer == Refused || s.Service != nil && s.Service.Verdict.Answer == Refused
	for _, claim := range s.Claims {
		bad = bad || claim.Verdict.Answer == Refused
	}
	for _, rj := range s.ReplicatedJobs {
		bad = bad || rj.TakenNames != "" || rj.Job.refused() || rj.Pod.refused()
	}
	for _, line := range s.Quota {
		bad = bad || line.Short != ""
	}
	return bad
}

// unknown reports whether the check was not possible.
func (s *Set) unknown() bool {
	asked := []*Verdict{&s.Verdict}
	for i := range s.ReplicatedJobs {
		asked = append(asked, s.ReplicatedJobs[i].Job, s.ReplicatedJobs[i].Pod)
	}
	for i := range s.Claims {
		asked = append(asked, &s.Claims[i].Verdict)
	}
	if s.Service != nil {
		asked = append(asked, &s.Service.Verdict)
	}
	return slices.ContainsFunc(asked, func(v *Verdict) bool { return v != nil && v.Answer == Unknown })
}

func (v *Verdict) refused() bool { return v != nil && v.Answer == Refused }
