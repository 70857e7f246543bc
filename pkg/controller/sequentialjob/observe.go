// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// observeChildren returns the sequence and its children as the caches have them.
func (s *Syncer) observeChildren(key cache.ObjectName, sj *batchv1alpha1.SequentialJob) (*plan.Observed, []consistency.Child, error) {
	owned, err := s.deps.Caches.Children(sj)
	shown := make([]consistency.Child, 0, len(owned))
	for i := range owned {
		shown = append(shown, consistency.Child{UID: owned[i].UID, Deleting: owned[i].Deleting})
	}
	return &plan.Observed{
		SequentialJob: sj, Children: owned, Queue: plan.Queue{Served: true},
		RefusedSince: s.refusedSince.Noted(key), FailingSince: s.writesFail.Noted(key),
		Now: metav1.NewTime(s.deps.Clock.Now().Truncate(time.Second)),
	}, shown, err
}

// observe adds what else a decision is made on. It returns true while the caches do not show what the status already
// holds. Whether a child is gone that no cache shows is read from the API.
func (s *Syncer) observe(ctx context.Context, obs *plan.Observed) (lags bool, err error) {
	if obs.Unreadable, err = s.deps.Caches.Unreadable(obs.SequentialJob); err != nil || len(plan.Unknown(*obs)) > 0 {
		return false, err // nothing else is asked: nothing is done
	}
	if lags, err = s.lags(ctx, obs); err == nil && !lags {
		err = s.observeOthers(ctx, obs)
	}
	s.noteFailure(ctx, obs.SequentialJob, err)
	return lags && err == nil, err
}

// answer adds what a decision asks for, most of which is in the API only.
func (s *Syncer) answer(ctx context.Context, obs *plan.Observed, p plan.Plan) error {
	err := s.answerAll(ctx, obs, p)
	s.noteFailure(ctx, obs.SequentialJob, err)
	return err
}

func (s *Syncer) answerAll(ctx context.Context, obs *plan.Observed, p plan.Plan) error {
	sj := obs.SequentialJob
	if p.AskRestored {
		state, err := s.deps.Restore(ctx, sj)
		if err != nil {
			return err
		}
		obs.Restored = state.Known()
	}
	if p.Unseen != nil {
		child, why, err := s.live(ctx, sj, *p.Unseen)
		if err != nil {
			return err
		}
		obs.Unseen = hostplan.Existing(*p.Unseen, child != nil)
		addStripped(obs, child, why)
	}
	if p.Earlier != nil {
		obs.Earlier = s.observeEarlier(ctx, sj, *p.Earlier)
	}
	if p.FailedJob != nil {
		cause := s.deps.FirstCause(ctx, sj.Namespace, *p.FailedJob)
		obs.FirstCause = hostplan.Obtained(ptr.Deref(cause, jobsetv1alpha2.FailureCause{}), cause != nil)
	}
	return nil
}

// noteAnswer remembers that a write may have changed the sequence although it failed.
func (s *Syncer) noteAnswer(key cache.ObjectName, err error) {
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		s.unanswered.Note(key, true)
	}
}

// waitsForAnswer returns whether a write whose answer is not known has changed the sequence, and the cache does not show it yet: a step
// that has ended by that write must not run again.
func (s *Syncer) waitsForAnswer(ctx context.Context, key cache.ObjectName, sj *batchv1alpha1.SequentialJob) (bool, error) {
	if !s.unanswered.Noted(key) {
		return false, nil
	}
	live, err := s.deps.SequentialJobs(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return true, fmt.Errorf("reading sequentialjob %s after a write without an answer: %w", key, err)
	case live.UID != sj.UID || live.ResourceVersion != sj.ResourceVersion:
		return true, nil
	}
	s.unanswered.Forget(key)
	return false, nil
}

// lags returns whether a child exists that the caches do not show although the status knows it: another process may have seen
// it before this one did. Without this question its step would run again.
func (s *Syncer) lags(ctx context.Context, obs *plan.Observed) (bool, error) {
	ref := plan.Unseen(*obs)
	if ref == nil {
		return false, nil
	}
	child, why, err := s.live(ctx, obs.SequentialJob, *ref)
	if err != nil {
		return false, err
	}
	addStripped(obs, child, why)
	return child != nil && why == nil, nil
}

// addStripped adds a child that no cache is going to show, so that the decision is made on what the API has answered.
func addStripped(obs *plan.Observed, child *plan.Child, why *plan.Refusal) {
	if child != nil && why != nil {
		obs.Children, obs.Stripped = append(slices.Clone(obs.Children), *child), why
	}
}

// live returns a child as the API has it, of any UID if that is not known; nil if it is gone. The refusal is why no cache is going to show
// it.
func (s *Syncer) live(ctx context.Context, sj *batchv1alpha1.SequentialJob, ref plan.ChildRef) (*plan.Child, *plan.Refusal, error) {
	if ref.Kind == batchv1alpha1.StepKindJobSet {
		return read(ctx, s.jobSets, sj, ref, plan.ChildOfJobSet)
	}
	return read(ctx, s.jobs, sj, ref, plan.ChildOfJob)
}

// read asks the API for a child. One that lost the label by which it is selected gets it back, because no cache shows it.
func read[T metav1.Object](ctx context.Context, w *children.Writer[T], sj *batchv1alpha1.SequentialJob, ref plan.ChildRef,
	view func(T) plan.Child) (*plan.Child, *plan.Refusal, error) {
	object, err := w.Get(ctx, sj.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading child %s/%s, which no cache shows: %w", sj.Namespace, ref.Name, err)
	case ref.UID != "" && object.GetUID() != ref.UID || !metav1.IsControlledBy(object, sj):
		return nil, nil, nil
	}
	child := view(object)
	if _, err = restoreLabel(ctx, w, sj, object); apierrors.IsConflict(err) {
		return nil, nil, err
	}
	return &child, refusalOf(err), nil
}

// observeOthers adds what else than children belongs to the sequence.
func (s *Syncer) observeOthers(ctx context.Context, obs *plan.Observed) (err error) {
	if s.deps.Queues != nil && plan.NamesQueue(*obs) {
		if obs.Queue, err = s.deps.Queues.Queue(ctx, obs.SequentialJob, plan.Current(*obs)); err != nil {
			return err
		}
	}
	key := cache.MetaObjectToName(obs.SequentialJob)
	s.observeContest(ctx, obs)
	s.observeRefusedPods(key, obs)
	pods, reason, err := s.deps.Caches.Unschedulable(obs.SequentialJob)
	if since := children.Since(s.unschedulable, key, err == nil && pods > 0, obs.Now.Time); !since.IsZero() {
		obs.Unschedulable = plan.Unschedulable{Pods: pods, Reason: reason, Since: since}
	}
	return err
}

// observeContest finds out who suspends the current child again and again. Its name is in the API only: caches do not
// keep the managers of fields.
func (s *Syncer) observeContest(ctx context.Context, obs *plan.Observed) {
	ref := plan.Current(*obs)
	var contested *children.UndoneError
	if ref.UID == "" || !errors.As(s.guardOf(ref.Kind).Changing(obs.SequentialJob, nameOf(ref), theSuspension), &contested) {
		return
	}
	var child metav1.Object
	var err error
	if ref.Kind == batchv1alpha1.StepKindJobSet {
		child, err = s.jobSets.Get(ctx, obs.SequentialJob.Namespace, ref.Name)
	} else {
		child, err = s.jobs.Get(ctx, obs.SequentialJob.Namespace, ref.Name)
	}
	obs.Contest = &plan.Contest{Next: contested.Next}
	if err == nil {
		obs.Contest.By = children.ManagerOf(child, "spec", "suspend")
	}
}

// observeRefusedPods adds the pods of the current Job that the API refuses, and remembers since when there are any.
func (s *Syncer) observeRefusedPods(key cache.ObjectName, obs *plan.Observed) {
	var refusal *hostplan.Refusal
	current := plan.Current(*obs)
	for i := range obs.Children {
		if c := &obs.Children[i]; c.ChildRef == current && c.Kind == batchv1alpha1.StepKindJob {
			refusal = s.deps.Caches.PodRefusal(c.UID, c.LacksPods)
		}
	}
	if since := children.Since(s.podsRefused, key, refusal != nil, obs.Now.Time); refusal != nil {
		obs.RefusedPods = plan.RefusedPods{Owners: 1, Reason: refusal.Reason, Message: refusal.Message, At: refusal.At, Since: since}
	}
}
