// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Creation is the result of the creation of one Job.
type Creation int

// Results of creations.
const (
	// NotTried Jobs were not asked for: the pass was over, or the request was sure to be refused.
	NotTried Creation = iota
	// Created Jobs are new.
	Created
	// Exists is for Jobs that the set already has. The caches are about to show them.
	Exists
	// LabelsRestored is for Jobs that the set already has, and that no cache showed because they had lost their labels.
	LabelsRestored
	// NameTaken is for Jobs whose name an object has that the set does not own.
	NameTaken
	// NameFreed is for Jobs whose name was taken a moment ago. No cache shows that it is free.
	NameFreed
	// Refused Jobs may be refused for a reason of their own.
	Refused
	// TemplateRefused Jobs are refused for a reason that all Jobs of the replicatedJob share.
	TemplateRefused
)

// Results are what became of the writes of a plan.
type Results struct {
	// Creations are the results for Plan.CreateJobs, in the same order; nil if no Job was asked for.
	Creations []Creation
	// CreationError summarizes why Jobs were not created; empty if none was refused, or if it need not be reported.
	CreationError string
	// Refusals are why children were not created, one for each reason. If Refused is not empty, it names what they are
	// about: the Service, a volume claim, or a group of pods, all of which come before Jobs.
	Refusals []Refusal
	Refused  string
	// ServiceError is why the Service was not created; empty if it was not refused.
	ServiceError string
	// ClaimErrors are why volume claims were not created.
	ClaimErrors []string
	// RefusedResources are the names of Jobs to which the API refuses their resources, with its answers.
	RefusedResources []hostplan.BlockedChild
	// IgnoredQueue is the queue that the set names in a cluster without Kueue, while that is to be reported; empty otherwise.
	IgnoredQueue string
	// MissingRules is one of the containers that were created without their restart rules; nil if all have them.
	MissingRules *MissingRules
	// Accepted is the number of requests about Jobs that were carried out.
	Accepted int
	// Interrupted is true if the time of the pass ended before all writes were done.
	Interrupted bool
}

// Outcome is what remains to be done of a sync when the children are written, and what is remembered until the next one.
type Outcome struct {
	// Status is the complete next status, which is stored now; nil for none.
	Status *jobsetv1alpha2.JobSetStatus
	// Events are reported once Status is stored.
	Events []Event
	// Warnings are about children, and are reported whether the status can be stored or not.
	Warnings []Event
	// DeleteJobSet is true if the set is deleted in the foreground, unless it was changed.
	DeleteJobSet bool
	// Deferred is what is remembered of a status that is stored later; zero for none. While Status is not stored, what was
	// remembered before stays.
	Deferred Deferred
	// DeferStatus is for how long the status waits; 0 if it does not.
	DeferStatus time.Duration
	// CreateFrom is the next Observed.CreateFrom.
	CreateFrom int64
	// RefusedSince is the next Observed.RefusedSince.
	RefusedSince time.Time
	// RequeueAfter is the time after which the next sync is due even if nothing happens; 0 for none.
	RequeueAfter time.Duration
	// ActsAfter is the part of RequeueAfter after which a time limit ends: then a rule acts. 0 for none.
	ActsAfter time.Duration
	// Continue is true if the plan was full, or took longer than a pass may, and something of it was accepted.
	Continue bool
}

// Finish returns what to store, report and remember about a set, given what was observed and decided, and what became of it.
func Finish(o Observed, p Plan, r Results) Outcome {
	r = withRefusal(p.Groups, r)
	out := Outcome{
		Status: p.Status, Events: p.Events, Warnings: warnings(o, p, r), CreateFrom: nextCreateFrom(o, p, r),
		RefusedSince: hostplan.RefusedSince(o.RefusedSince, o.Now.Time, len(r.Refusals) > 0, r.Interrupted),
		DeleteJobSet: p.DeleteJobSet && !r.Interrupted, RequeueAfter: p.RequeueAfter, ActsAfter: p.ActsAfter,
	}
	unseen := suspended(o.JobSet) && len(p.jobsWith(r, Exists))+len(p.jobsWith(r, LabelsRestored)) > 0
	if unseen { // Jobs that no cache shows may run: the set is not suspended yet, and keeps its domains
		out.Status, out.Events = nil, nil // the next decision finds these events again
	}
	out.noteResults(o, p, r, p.jobsWith(r, NameTaken))
	if len(p.jobsWith(r, NameFreed)) > 0 {
		out.requeue(RetryNamesAfter(o))
	}
	out.requeue(o.RetryFeaturesAfter)
	if out.Deferred, out.DeferStatus = deferStatus(o, out); out.DeferStatus > 0 {
		out.Status, out.Events = nil, nil // the next decision finds these events again
		out.requeue(out.DeferStatus)
	}
	if unseen {
		out.Deferred = o.Deferred
	}
	out.Continue = (p.More || r.Interrupted) && r.Accepted > 0
	return out
}

// noteResults adds to the status what only shows when a plan is carried out.
func (out *Outcome) noteResults(o Observed, p Plan, r Results, takenNames []string) {
	if len(takenNames)+len(r.Refusals) == 0 && !r.MissingRules.noted(&o.JobSet.Status) {
		return
	}
	next := cmp.Or(out.Status, &o.JobSet.Status).DeepCopy()
	// Decide knows whether the conditions are about the present spec.
	d := draft{next: next, events: out.Events, generation: o.JobSet.Generation, premature: true}
	d = d.with(o.Now, reports(slices.Concat(
		nameConflict(o, p, takenNames, current(next, jobsetv1alpha2.ChildNameConflict)),
		creationFailure(o, p, r, current(next, jobsetv1alpha2.JobCreationFailure), out.RefusedSince),
		rulesMissing(o, r))...))
	out.Status, out.Events = d.result(o.JobSet), d.events
	out.requeue(d.due)
}

// requeue makes the next sync due after the time, unless it is due earlier; 0 is never.
func (out *Outcome) requeue(after time.Duration) {
	out.RequeueAfter = hostplan.Sooner(out.RequeueAfter, after)
}

// jobsWith returns the names of the Jobs whose creation had the result.
func (p Plan) jobsWith(r Results, result Creation) (names []string) {
	for i, got := range r.Creations {
		if got == result {
			names = append(names, p.CreateJobs[i].Name)
		}
	}
	return names
}

// nextCreateFrom returns the place of the Job that is created first by the next plan. What was refused has its turn last
// then, and so has, if the plan was full, all that it held: names that are taken must not fill the next plan, too.
func nextCreateFrom(o Observed, p Plan, r Results) int64 {
	last, failed := -1, r.CreationError != ""
	for i, result := range r.Creations {
		if result != NotTried {
			last = i
		}
		failed = failed || result == Refused || result == TemplateRefused
	}
	switch {
	case r.Creations == nil && len(p.CreateJobs) > 0:
		return o.CreateFrom // the Service or a claim comes first
	case last >= 0 && (failed || p.More):
		return placeAfter(o.JobSet, p.CreateJobs[last], r.Creations[last] == TemplateRefused)
	}
	return 0
}
