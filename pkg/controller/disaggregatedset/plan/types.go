// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Observed is all that decisions depend on. What it points to is shared and must not be changed. Lists are in any order.
type Observed struct {
	// Set is the set as stored.
	Set *disaggregatedsetv1.DisaggregatedSet
	// Children are the LeaderWorkerSets that the set controls.
	Children []Child
	// Services are the Services that the set controls.
	Services []Service
	// Scalers are the scalers that the set controls.
	Scalers []*disaggregatedsetv1.DisaggregatedSetRoleScaler
	// TakenScalers are the names of scalers that exist and that the set does not control.
	TakenScalers map[string]bool
	// Orphans are objects without a controller that are made like children of the set.
	Orphans []Orphan
	// Unreadable are children, or objects that may be children, that the server cannot read.
	Unreadable []Unreadable
	// Conflicts are those names that were reported before.
	Conflicts map[string]bool
	// TroubledSince is since when each pass had troubles with children; zero if the last one had none.
	TroubledSince time.Time
	// Now is the time of the observation, in whole seconds.
	Now metav1.Time
}

// Ref names one incarnation of a child.
type Ref = hostplan.Ref

// Child is what decisions use of a LeaderWorkerSet.
type Child struct {
	Ref
	// ResourceVersion is its version.
	ResourceVersion string
	// Role, Slice and Revision come from its labels. Legacy means that it has no slice, and belongs to slice 0; Slice is
	// -1 if the label is not a valid index.
	Role, Revision string
	Slice          int32
	Legacy         bool
	// Initial is its annotation initial-replicas; nil if it has none. Annotated means that it has annotations.
	Initial   *int64
	Annotated bool
	// Replicas is its spec.replicas.
	Replicas int32
	// Current, Ready and Updated are status.replicas, status.readyReplicas and status.updatedReplicas.
	Current, Ready, Updated int32
	// Created is when it was created.
	Created metav1.Time
	// Deleting means that it is being deleted.
	Deleting bool
	// Trouble is what keeps it from having all its groups; nil if nothing is known to do so.
	Trouble *hostplan.Refusal
}

// Service is what decisions use of a Service.
type Service struct {
	Ref
	// Revision and Slice come from its labels. Without a slice it belongs to slice 0; Slice is -1 if the label is not a valid index.
	Revision string
	Slice    int32
	// Deleting means that it is being deleted.
	Deleting bool
}

// Plan is what to write. Slices are independent of each other.
type Plan struct {
	// Revision is the revision of the set.
	Revision string
	// Adopt are orphans that get the set as their controller, if the set that is stored is still this one. They come first.
	Adopt []Adoption
	// CreateScalers and DeleteScalers come next.
	CreateScalers []*disaggregatedsetv1.DisaggregatedSetRoleScaler
	DeleteScalers []Ref
	// Slices are what to do in each slice, also in those that are to go.
	Slices []SlicePlan
	// ScalerStatuses are scalers with their next status. The objects are copies.
	ScalerStatuses []*disaggregatedsetv1.DisaggregatedSetRoleScaler
	// Conflicts are names of scalers that others have.
	Conflicts []string
	// Invalid is why nothing can be done about the set; empty if something can.
	Invalid string
}

// SlicePlan is what to write in a slice, in the order of the fields. The first error of the fields from Create on ends
// it: what is scaled down relies on what was scaled up.
type SlicePlan struct {
	Slice int32
	// DeleteServices and DeleteChildren are no longer wanted, with the events about them.
	DeleteServices []Ref
	DeleteChildren []Deletion
	// Annotate changes the annotation initial-replicas.
	Annotate []Annotation
	// Create creates LeaderWorkerSets.
	Create []Creation
	// Scale changes spec.replicas: first what grows.
	Scale []Scaling
	// CreateServices creates Services.
	CreateServices []*corev1.Service
	// Starts and Completes mean that a rolling update of the slice begins, or ends, if all of the plan succeeds.
	Starts, Completes bool
}

// Creation is a LeaderWorkerSet to create. It is built when it is written: those of all slices together may be a
// hundred times as large as the set.
type Creation struct {
	// Name is its name.
	Name string
	// Role is the role of the set. It is shared.
	Role *disaggregatedsetv1.DisaggregatedRoleSpec
	// Slice and Revision are the values for its labels.
	Slice    int32
	Revision string
	// Replicas is its spec.replicas.
	Replicas int32
}

// Deletion is a LeaderWorkerSet to delete, and why.
type Deletion struct {
	Ref
	Reason DeletionReason
}

// DeletionReason is why a LeaderWorkerSet is deleted.
type DeletionReason string

// Reasons of deletions.
const (
	Drained      DeletionReason = "Drained"
	SliceRemoved DeletionReason = "SliceRemoved"
	Migrated     DeletionReason = "Migrated"
)

// Annotation is a change of the annotation initial-replicas; nil removes it.
type Annotation struct {
	Ref
	ResourceVersion string
	Annotated       bool
	Initial         *int64
}

// Scaling is a change of spec.replicas.
type Scaling struct {
	Ref
	ResourceVersion string
	Role            string
	From, To        int32
}

// Results are what became of a plan. Of each list it has as many items as the plan.
type Results struct {
	// Adopted are the indexes of those that have their controller.
	Adopted []int
	// CreatedScalers and DeletedScalers are the indexes of those that were written.
	CreatedScalers, DeletedScalers []int
	// Slices are in the order of the plan.
	Slices []SliceResult
	// NameTaken means that other objects have names of children. Refusals say so.
	NameTaken bool
	// Failed are the writes that were refused, for events, and Blocked which children could not be created or updated, for the condition.
	Failed  []FailedWrite
	Blocked []hostplan.BlockedChild
	// Skipped means that a write was not tried, because it was sure to be refused, or enough others were.
	Skipped bool
	// Accepted is the number of writes that were not.
	Accepted int
	// Interrupted means that the time of the pass was over before all was done.
	Interrupted bool
}

// FailedWrite is a write that was refused.
type FailedWrite struct {
	// Verb is the verb of the write, and Note says what could not be written, and why.
	Verb Verb
	Note string
}

// Verb is what a write does.
type Verb string

// Verbs of writes.
const (
	Adopt  Verb = "Adopt"
	Create Verb = "Create"
	Update Verb = "Update"
	Delete Verb = "Delete"
)

// SliceResult is what became of the plan of a slice.
type SliceResult struct {
	// DeletedChildren and Scaled are the indexes of those that were written.
	DeletedChildren, Scaled []int
	// Done means that everything was written.
	Done bool
}

// Outcome is what to store and to report.
type Outcome struct {
	// Status is the next status; nil if it does not change.
	Status *disaggregatedsetv1.DisaggregatedSetStatus
	// Events are reported once the status is stored.
	Events []Event
	// TroubledSince is to be remembered.
	TroubledSince time.Time
	// Continue means that the next pass is to come at once, because this one was over before all was done.
	Continue bool
	// LookAfter is when to look again although nothing happens; 0 for never.
	LookAfter time.Duration
}

// Event is an event about the set, and perhaps a LeaderWorkerSet.
type Event = hostplan.Event
