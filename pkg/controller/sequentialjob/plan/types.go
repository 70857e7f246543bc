// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Observed is all that decisions depend on. What it points to is shared and must not be changed.
type Observed struct {
	// SequentialJob is the sequence as stored.
	SequentialJob *batchv1alpha1.SequentialJob
	// Children are the Jobs and JobSets that the sequence controls by UID, in any order, terminating ones included.
	Children []Child
	// Unreadable are JobSets that the server cannot read, and that are or may be children.
	Unreadable []Unreadable
	// Restored is known of a sequence whose status no controller has written since the store was restored from a backup. There is none for
	// another sequence.
	Restored hostplan.Known[Restored]
	// FirstCause is why the current child failed, if that is a Job.
	FirstCause hostplan.Known[jobsetv1alpha2.FailureCause]
	// Contest is what is known of a current child that another client suspends. There is none unless that happened again each time the
	// controller resumed it.
	Contest hostplan.Known[Contest]
	// Queue is what is known of Kueue about a sequence that names a queue, or whose child does.
	Queue hostplan.Known[Queue]
	// Unseen is the child of Asks.Unseen as the API has it.
	Unseen hostplan.Known[LiveChild]
	// Earlier is a pod or a Job of earlier children that runs, like "pod etl-0-x on node n1". There is none once all of them have
	// ended, and no Job is left that could create one.
	Earlier hostplan.Known[string]
	// EarlierUnreadable is why Earlier could not be obtained; empty if it was, or was not asked for.
	EarlierUnreadable string
	// Unschedulable are the pods that wait for a node.
	Unschedulable Unschedulable
	// PodsRefusedSince is since when the API refuses pods of children that are Jobs; zero if it refuses none, as far as is known.
	PodsRefusedSince time.Time
	// Stripped is why the current child does not get the label back without which no cache shows it; nil unless that is so. Then Children
	// have it as the API has answered.
	Stripped *Refusal
	// RefusedSince is since when each pass was refused the creation of the child; zero if the last one was not.
	RefusedSince time.Time
	// FailingSince is since when each pass has failed to write something else; zero if the last one has not.
	FailingSince time.Time
	// Now is the time of the observation, in whole seconds.
	Now metav1.Time
}

// Restored is what is known of a sequence that is as a backup had it.
type Restored = hostplan.Restored

// Child is what decisions use of a Job or a JobSet.
type Child struct {
	ChildRef
	// ResourceVersion is the resource version of the child.
	ResourceVersion string
	// Attempt is the number of the attempt of its step that the child is; 0 if it does not say.
	Attempt int32
	// Created is when it was created.
	Created metav1.Time
	// Queued means that the child names a queue, so that Kueue decides when it runs.
	Queued bool
	// Suspended is its spec.suspend.
	Suspended bool
	// Busy means that it has pods, or may have.
	Busy bool
	// Ready means that all of its pods are ready, or have succeeded.
	Ready bool
	// Admission is what Admission.Key was when it was created; empty if it runs without the quota of the sequence.
	Admission string
	// Deleting means that it is being deleted.
	Deleting bool
	// LacksPods means that a Job has fewer pods than it should.
	LacksPods bool
	// Refused is what the API refuses to the controller of the child: pods of a Job, or what a condition of a JobSet says; nil if nothing.
	Refused *hostplan.Refusal
	// End is how it has ended; empty while it has not.
	End End
	// EndTime is when it ended.
	EndTime *metav1.Time
	// Reason and Message are why it failed.
	Reason, Message string
	// FirstCause is the first cause of the failure of a JobSet, which its own controller found.
	FirstCause *jobsetv1alpha2.FailureCause
	// InContainers means that pods of a Job may hold a failure although they have not failed themselves.
	InContainers bool
	// JobsEnded means that all Jobs of a JobSet have ended.
	JobsEnded bool
}

// Contest is a child that another client suspended three times within a minute, each time after the controller had resumed it.
type Contest struct {
	// By is the field manager that suspended it; empty if that is not known.
	By string
	// Next is when it is resumed again.
	Next time.Time
}

// End is how a child has ended.
type End string

const (
	// Succeeded children have completed.
	Succeeded End = "Succeeded"
	// Failed children have failed permanently.
	Failed End = "Failed"
)

// ChildRef names one child and its very incarnation.
type ChildRef struct {
	// Kind of the child.
	Kind batchv1alpha1.StepKind
	// Name of the child, in the namespace of the sequence.
	Name string
	// UID of the child.
	UID types.UID
}

// LiveChild is a child as the API has it, although no cache shows it.
type LiveChild struct {
	Child
	// Stripped means that it has lost the label without which no cache shows it.
	Stripped bool
	// Meta is what is needed to put the label back.
	Meta metav1.ObjectMeta
}

// Queue is what is known of Kueue about a sequence that names a queue.
type Queue struct {
	// Served means that the cluster serves Kueue's API. It must be true unless it is known that the cluster does not.
	Served bool
	// Workload is what is known of the Workload that Kueue made for the current child. It is unknown while a controller starts, or while the
	// API of Kueue is away.
	Workload hostplan.Known[*Workload]
	// Hold is what is known of the quota for the whole sequence; nil if each step asks for its own.
	Hold *Hold
	// Unreadable is why Workloads cannot be read; empty if they can, or if that is not known.
	Unreadable string
}

// Workload is what decisions use of a Workload of Kueue.
type Workload struct {
	// Name, UID and ResourceVersion identify the Workload.
	Name            string
	UID             types.UID
	ResourceVersion string
	// Active is its spec.active: false keeps it, and its child, out of the queue.
	Active bool
	// Deactivated means that this controller made it inactive. A Workload that an administrator or Kueue made inactive stays so.
	Deactivated bool
	// Message is why it waits, in the words of Kueue; empty if Kueue says nothing.
	Message string
}

// Unschedulable are the pods of the current child for which the scheduler finds no node.
type Unschedulable = hostplan.Unschedulable

// Plan is what has to be done to bring the children of a sequence, and its status, to where they should be. The zero Plan
// does nothing.
type Plan struct {
	// Status is the complete next status; nil when the stored one is right.
	Status *batchv1alpha1.SequentialJobStatus
	// Events are reported once Status is stored.
	Events []Event

	// Asks is what the decision needs to know, and the snapshot does not say.
	Asks Asks
	// Relabel is a child of which no cache shows that it exists, because it has lost its label; nil for none. It gets the label back before
	// anything else is decided, and a plan that has one holds nothing else.
	Relabel *ChildRef
	// Lags means that caches are about to show a child that the API has. Nothing is done until they do.
	Lags bool

	// AddFinalizer means that the finalizer is added before the child is created.
	AddFinalizer bool
	// RemoveFinalizer means that the finalizer is removed once Status is stored and the children of Delete are gone or about to be.
	RemoveFinalizer bool
	// Delete are children to delete in the foreground.
	Delete []Deletion
	// Suspend are children whose spec.suspend changes.
	Suspend []SuspendPatch
	// SetWorkloadActive changes spec.active of the Workload of the current child; nil leaves it.
	SetWorkloadActive *WorkloadPatch
	// CreateJob or CreateJobSet is the child to create, if any. One of them is nil.
	CreateJob    *batchv1.Job
	CreateJobSet *jobsetv1alpha2.JobSet
	// DeleteSequentialJob means that the sequence has outlived its time after finishing and is deleted in the foreground.
	DeleteSequentialJob bool

	// RequeueAfter is the time after which a decision is due even if nothing happens; 0 for none.
	RequeueAfter time.Duration
	// ActsAfter is the part of RequeueAfter after which a time limit ends: then a rule acts. 0 for none.
	ActsAfter time.Duration
}

// Deletion is a child to delete.
type Deletion struct {
	ChildRef
	// Index is the index of its step.
	Index int
	// Note is what an event says when the request was accepted; empty for no event.
	Note string
}

// SuspendPatch is a change of spec.suspend, valid only for the version of the child that it was derived from.
type SuspendPatch struct {
	ChildRef
	// ResourceVersion is the resource version of the child that the decision was made on.
	ResourceVersion string
	// Suspend is the next value.
	Suspend bool
}

// WorkloadPatch is a change of spec.active of a Workload, valid only for the version that it was derived from.
type WorkloadPatch struct {
	// Name, UID and ResourceVersion identify the Workload.
	Name            string
	UID             types.UID
	ResourceVersion string
	// Active is the next value.
	Active bool
}

// Event is an event about the sequence.
type Event = hostplan.Event

func (p Plan) creates() bool { return p.CreateJob != nil || p.CreateJobSet != nil }
