// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/refusals"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/restore"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// Caches are what a decision is made on.
type Caches interface {
	// SequentialJob returns a sequence; nil if there is none.
	SequentialJob(key cache.ObjectName) (*batchv1alpha1.SequentialJob, error)
	// Children returns the Jobs and JobSets that the sequence controls.
	Children(sj *batchv1alpha1.SequentialJob) ([]plan.Child, error)
	// PodRefusal returns why the API refuses pods of a Job; nil if it does not, as far as is known. Lacks means that the Job has too few.
	PodRefusal(job types.UID, lacks bool) *refusals.Refusal
	// Unschedulable returns the number of pods of the sequence for which the scheduler finds no node, and its reason for one of
	// them.
	Unschedulable(sj *batchv1alpha1.SequentialJob) (pods int, reason string, err error)
}

// Client is a client of SequentialJobs in one namespace. The generated ones have it.
type Client interface {
	children.OwnerClient[*batchv1alpha1.SequentialJob]
	Get(ctx context.Context, name string, options metav1.GetOptions) (*batchv1alpha1.SequentialJob, error)
	Patch(ctx context.Context, name string, patchType types.PatchType, data []byte, options metav1.PatchOptions,
		subresources ...string) (*batchv1alpha1.SequentialJob, error)
}

// Queues is what is known of Kueue, and what is asked of it.
type Queues interface {
	// Queue returns what is known about a sequence that names a queue, and about its current child; the child is zero while
	// there is none.
	Queue(ctx context.Context, sj *batchv1alpha1.SequentialJob, child plan.ChildRef) (plan.Queue, error)
	// SetActive changes spec.active of the Workload of the current child of a sequence. One that is gone is no error.
	SetActive(ctx context.Context, sj *batchv1alpha1.SequentialJob, patch plan.WorkloadPatch) error
}

// SyncerConfig is what a Syncer needs.
type SyncerConfig struct {
	*children.Host
	// Caches are read.
	Caches Caches
	// SequentialJobs, Jobs and JobSets are clients for a namespace.
	SequentialJobs func(namespace string) Client
	Jobs           func(namespace string) children.Client[*batchv1.Job]
	JobSets        func(namespace string) children.Client[*jobsetv1alpha2.JobSet]
	// FirstCause returns why a Job failed; nil if that is not known.
	FirstCause func(ctx context.Context, namespace string, job plan.FailedJob) *jobsetv1alpha2.FailureCause
	// Running returns a pod or a Job of earlier children of a sequence that runs, or may create pods; "" if there is none.
	// It asks the API, because caches may lag.
	Running func(ctx context.Context, sj *batchv1alpha1.SequentialJob, query plan.EarlierQuery) (string, error)
	// Queues is nil if nothing is known of Kueue.
	Queues Queues
	// Restore returns what is known about it if the store was restored from a backup.
	Restore func(ctx context.Context, sj *batchv1alpha1.SequentialJob) (restore.State, error)
	// Recorder sends events.
	Recorder events.EventRecorder
}

// Syncer carries out what is decided about sequences: Observe, Apply, and Finish between and after the decisions of package
// plan. It decides nothing itself.
type Syncer struct {
	deps    SyncerConfig
	jobs    *children.Writer[*batchv1.Job]
	jobSets *children.Writer[*jobsetv1alpha2.JobSet]

	// refusedSince is since when each pass was refused the creation of a child.
	refusedSince *children.Notes[time.Time]
	// unanswered are sequences that a write may have changed whose answer is not known.
	unanswered *children.Notes[bool]
	// unschedulable is since when sequences have pods for which the scheduler finds no node.
	unschedulable *children.Notes[time.Time]
	// podsRefused is since when the API refuses pods of sequences.
	podsRefused *children.Notes[time.Time]
	// resumptions of children may be undone by another controller.
	resumptions *children.Reversals
	// failing is since when passes fail with errors that no condition shows.
	failing *children.Notes[time.Time]
}

// NewSyncer returns a Syncer that remembers nothing.
func NewSyncer(deps SyncerConfig) *Syncer {
	return &Syncer{
		deps: deps,
		jobs: children.NewWriter(deps.Host, batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), resourceJobs, "job", deps.Jobs),
		jobSets: children.NewWriter(deps.Host, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet").GroupKind(), resourceJobSets, "jobset",
			deps.JobSets),

		refusedSince: children.NotesOf[time.Time](deps.Host), unanswered: children.NotesOf[bool](deps.Host),
		unschedulable: children.NotesOf[time.Time](deps.Host),
		podsRefused:   children.NotesOf[time.Time](deps.Host), resumptions: children.NewReversals(deps.Host),
		failing: children.NotesOf[time.Time](deps.Host),
	}
}

// Finish does what remains of a sync: it reports what became of children, stores the status, reports its events, and then
// removes the finalizer, or deletes a sequence whose time is over.
func (s *Syncer) Finish(ctx context.Context, sj *batchv1alpha1.SequentialJob, out plan.Outcome) error {
	key := cache.MetaObjectToName(sj)
	for _, warning := range out.Warnings {
		s.warn(sj, warning)
	}
	s.refusedSince.Note(key, out.RefusedSince)
	stored, err := s.writeStatus(ctx, sj, out)
	if err != nil || stored == nil || ctx.Err() != nil {
		return s.reported(sj, err)
	}
	switch {
	case out.RemoveFinalizer:
		err = s.removeFinalizer(ctx, stored)
	case out.DeleteSequentialJob:
		if err = children.DeleteOwner(ctx, s.deps.SequentialJobs(sj.Namespace), stored); err != nil {
			err = fmt.Errorf("deleting sequentialjob %s after its time to live: %w", key, err)
			break
		}
		klog.FromContext(ctx).V(3).Info("Deleted the SequentialJob after its time to live")
	}
	if err == nil {
		s.failing.Forget(key)
	}
	return s.reported(stored, err)
}

// writeStatus stores the next status, if there is one, and then reports its events. It returns the sequence as it is stored
// now; nil if it is gone.
func (s *Syncer) writeStatus(ctx context.Context, sj *batchv1alpha1.SequentialJob, out plan.Outcome) (*batchv1alpha1.SequentialJob, error) {
	stored := sj
	if out.ResourceVersion != "" {
		stored = sj.DeepCopy() // only while a step begins
		stored.ResourceVersion = out.ResourceVersion
	}
	if out.Status != nil {
		next := *stored // shares the rest, which is not changed
		next.Status = *out.Status
		updated, found, err := children.StoreStatus(ctx, s.deps.Host, s.deps.SequentialJobs(sj.Namespace), resourceSequentialJobs,
			"sequentialjob", &next)
		if err != nil {
			s.noteAnswer(cache.MetaObjectToName(sj), err)
		}
		if err != nil || !found {
			return nil, err
		}
		stored = updated
		countEnds(&sj.Status, &stored.Status)
	}
	for _, event := range out.Events {
		s.report(sj, event)
		klog.FromContext(ctx).V(4).Info("Reported an event", "reason", event.Reason) // notes may hold output of containers
	}
	return stored, nil
}

// forget drops what is remembered about a sequence that is gone.
func (s *Syncer) forget(key cache.ObjectName) {
	s.deps.Host.Forget(key)
}
