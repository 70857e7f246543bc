// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/restore"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// Caches are what a decision is made on.
type Caches interface {
	// SequentialJob returns a sequence; nil if there is none.
	SequentialJob(key cache.ObjectName) (*batchv1alpha1.SequentialJob, error)
	// Children returns the Jobs and JobSets that the sequence controls.
	Children(sj *batchv1alpha1.SequentialJob) ([]plan.Child, error)
	// Unreadable returns the JobSets that the server cannot read, and that the sequence controls or may control.
	Unreadable(sj *batchv1alpha1.SequentialJob) ([]plan.Unreadable, error)
	// PodRefusal returns why the API refuses pods of a Job; nil if it does not, as far as is known. Lacks means that the Job has too few.
	PodRefusal(job types.UID, lacks bool) *hostplan.Refusal
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

// Loop runs sequences, Kind is what it needs to know of them, and Outcome is what is left to do for one of them.
type (
	Loop    = loop.Loop[*batchv1alpha1.SequentialJob, plan.Observed, plan.Plan, plan.Results]
	Kind    = loop.Kind[*batchv1alpha1.SequentialJob, plan.Observed, plan.Plan, plan.Results]
	Outcome = loop.Outcome[*batchv1alpha1.SequentialJob]
)

// Syncer carries out what is decided about sequences: it observes before the decisions of package plan, and applies them.
// It decides nothing itself.
type Syncer struct {
	*Loop
	deps    SyncerConfig
	jobs    *children.Writer[*batchv1.Job]
	jobSets *children.Writer[*jobsetv1alpha2.JobSet]

	// denials know which requests about the sequence itself and its Workload were denied.
	denials *children.Denials
	// finalizers guards the finalizers of sequences.
	finalizers *children.Guard
	// refusedSince is since when each pass was refused the creation of a child.
	refusedSince *children.Notes[time.Time]
	// writesFail is since when each pass has failed to write something else.
	writesFail *children.Notes[time.Time]
	// unanswered are sequences that a write may have changed whose answer is not known.
	unanswered *children.Notes[bool]
	// unheard are resumptions of children whose answer is not known.
	unheard *children.Notes[plan.SuspendPatch]
	// unschedulable is since when sequences have pods for which the scheduler finds no node.
	unschedulable *children.Notes[time.Time]
	// podsRefused is since when the API refuses pods of sequences.
	podsRefused *children.Notes[time.Time]
	// failing is since when passes fail with errors that no condition shows, such as those of the status write.
	failing *children.Notes[time.Time]
}

// NewSyncer returns a Syncer that remembers nothing.
func NewSyncer(deps SyncerConfig) *Syncer {
	s := &Syncer{
		deps: deps,
		jobs: children.NewWriter(deps.Host, batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), resourceJobs, "job", deps.Jobs),
		jobSets: children.NewWriter(deps.Host, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet").GroupKind(), resourceJobSets, "jobset",
			deps.JobSets),

		denials: children.DenialsOf(deps.Host), finalizers: children.NewGuard("sequentialjob", deps.Clock),
		refusedSince: children.NotesOf[time.Time](deps.Host), writesFail: children.NotesOf[time.Time](deps.Host),
		unanswered:    children.NotesOf[bool](deps.Host),
		unheard:       children.NotesOf[plan.SuspendPatch](deps.Host),
		unschedulable: children.NotesOf[time.Time](deps.Host),
		podsRefused:   children.NotesOf[time.Time](deps.Host),
		failing:       children.NotesOf[time.Time](deps.Host),
	}
	s.Loop = &Loop{
		Host: deps.Host, Kind: loopKind{Syncer: s}, GVK: batchv1alpha1.SchemeGroupVersion.WithKind("SequentialJob"),
		Resource: resourceSequentialJobs, Client: children.OwnersIn(deps.SequentialJobs), Recorder: deps.Recorder,
	}
	return s
}

// loopKind implements Kind.
type loopKind struct {
	loop.Defaults[*batchv1alpha1.SequentialJob, plan.Observed, plan.Plan]
	*Syncer
}

var _ Kind = loopKind{}

func (k loopKind) Owner(key cache.ObjectName) (*batchv1alpha1.SequentialJob, error) {
	return k.deps.Caches.SequentialJob(key)
}

func (loopKind) Moved(observed, now *batchv1alpha1.SequentialJob) bool { return moved(observed, now) }

func (loopKind) Decide(obs plan.Observed) plan.Plan { return plan.Decide(obs) }

func (loopKind) Questions(p plan.Plan) []string { return p.Questions() }

func (loopKind) Lags(p plan.Plan) bool { return p.Lags }

func (k loopKind) Conclude(obs *plan.Observed, p plan.Plan, results plan.Results) Outcome {
	return k.Syncer.Conclude(obs, plan.Finish(*obs, p, results))
}

// Conclude notes what is remembered of a sync, and returns what is left to do.
func (s *Syncer) Conclude(obs *plan.Observed, out plan.Outcome) Outcome {
	sj, key, current := obs.SequentialJob, cache.MetaObjectToName(obs.SequentialJob), obs.SequentialJob
	s.refusedSince.Note(key, out.RefusedSince)
	s.writesFail.Note(key, out.FailingSince)
	if out.ResourceVersion != "" {
		current = sj.DeepCopy() // only while a step begins
		current.ResourceVersion = out.ResourceVersion
	}
	left := Outcome{
		Owner: sj, Due: queue.Due{Deadline: out.RequeueAfter, Acts: out.ActsAfter},
		Writes: loop.Series(out.Warnings), Events: loop.Transitions(out.Events),
		NotStored: func(ctx context.Context, err error) {
			s.noteAnswer(key, err)
			s.noteFailure(ctx, sj, err)
		},
		Then: func(ctx context.Context, stored *batchv1alpha1.SequentialJob) error {
			if out.Status == nil {
				stored = current
			}
			err := s.end(ctx, stored, out)
			s.noteFailure(ctx, stored, err)
			return err
		},
	}
	if out.Status != nil {
		next := *current // shares the rest, which is not changed
		next.Status = *out.Status
		left.Next = &next
		left.Stored = func(stored *batchv1alpha1.SequentialJob) error {
			countEnds(&sj.Status, &stored.Status)
			return nil
		}
	}
	return left
}

// end removes the finalizer, or deletes a sequence whose time is over.
func (s *Syncer) end(ctx context.Context, stored *batchv1alpha1.SequentialJob, out plan.Outcome) (err error) {
	switch {
	case out.RemoveFinalizer:
		if err = s.removeFinalizer(ctx, stored); children.IsUndone(err) {
			s.Report(ctx, stored, loop.Report{Event: plan.Failure(err.Error())})
		}
	case out.DeleteSequentialJob:
		err = s.Delete(ctx, stored)
	}
	if err == nil {
		s.failing.Forget(cache.MetaObjectToName(stored))
	}
	return err
}

// noteFailure sends a warning about what no condition shows, if passes have failed for some time. That something has
// changed meanwhile is no failure.
func (s *Syncer) noteFailure(ctx context.Context, sj *batchv1alpha1.SequentialJob, err error) {
	if err == nil || apierrors.IsConflict(err) || children.IsUndone(err) { // the last one is reported where it occurs
		return
	}
	now := s.deps.Clock.Now()
	if since := children.Since(s.failing, cache.MetaObjectToName(sj), true, now); now.Sub(since) >= hostplan.PassesAfter {
		s.Report(ctx, sj, loop.Report{Event: plan.Failure(err.Error())})
	}
}
