// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Creation is the result of the creation of a child.
type Creation int

// Results of creations.
const (
	// NotTried means that no child was asked for.
	NotTried Creation = iota
	// Created children are new, or exist already. The caches are about to show them.
	Created
	// NameTaken is for a child whose name an object has that the sequence does not control.
	NameTaken
	// NameFreed is for a child whose name was taken a moment ago. No cache shows that it is free.
	NameFreed
	// Refused is for a child that the API refused.
	Refused
)

// Refusal is why the child was not created.
type Refusal = hostplan.Refusal

// Results are what became of the writes of a plan.
type Results struct {
	// ResourceVersion is the resource version of the sequence after its finalizer was added; empty if it was not.
	ResourceVersion string
	// Creation is the result for the child of the plan, and Refusal is why it was refused; nil if that need not be reported.
	Creation Creation
	Refusal  *Refusal
	// Existing is a child of the sequence that no cache shows, and that has the name; nil unless its label could not be put back.
	Existing *Child
	// Deleted are the deletions that were accepted, and Forbidden those for which the controller lacks the permission. They
	// hold the place in Plan.Delete.
	Deleted, Forbidden []int
	// Error is why something else than the creation failed; empty if nothing did, or if it was a conflict.
	Error string
	// MayPass means that the API has not decided against what failed: it did not answer, or could not.
	MayPass bool
	// Interrupted is true if the time of the pass ended before all writes were done.
	Interrupted bool
}

// Outcome is what remains to be done of a sync when the children are written, and what is remembered until the next one.
type Outcome struct {
	// Status is the complete next status, which is stored now; nil for none.
	Status *batchv1alpha1.SequentialJobStatus
	// ResourceVersion is the resource version of the sequence to which Status belongs.
	ResourceVersion string
	// Events are reported once Status is stored.
	Events []Event
	// Warnings are about children, and are reported whether the status can be stored or not.
	Warnings []Event
	// RemoveFinalizer is true if the finalizer is removed once Status is stored.
	RemoveFinalizer bool
	// DeleteSequentialJob is true if the sequence is deleted in the foreground, unless it was changed.
	DeleteSequentialJob bool
	// RefusedSince is the next Observed.RefusedSince.
	RefusedSince time.Time
	// FailingSince is the next Observed.FailingSince.
	FailingSince time.Time
	// RequeueAfter is the time after which the next sync is due even if nothing happens; 0 for none.
	RequeueAfter time.Duration
	// ActsAfter is the part of RequeueAfter after which a time limit ends: then a rule acts. 0 for none.
	ActsAfter time.Duration
}
