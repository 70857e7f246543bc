// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// observeChildren returns the sequence and its children as the caches have them.
func (s *Syncer) observeChildren(_ context.Context, key cache.ObjectName,
	sj *batchv1alpha1.SequentialJob) (*plan.Observed, []consistency.Child, error) {
	owned, err := s.deps.Caches.Children(sj)
	shown := make([]consistency.Child, 0, len(owned))
	for i := range owned {
		shown = append(shown, consistency.Child{UID: owned[i].UID, Deleting: owned[i].Deleting})
	}
	return &plan.Observed{
		SequentialJob: sj, Children: owned, RefusedSince: s.refusedSince.Noted(key), Queue: plan.Queue{Served: true},
		Now: metav1.NewTime(s.deps.Clock.Now().Truncate(time.Second)),
	}, shown, err
}

// observe adds what else a decision is made on. It returns true while the caches do not show what the status already
// holds. Why a Job failed may be read from the API, and whether a child is gone that no cache shows.
func (s *Syncer) observe(ctx context.Context, _ cache.ObjectName, obs *plan.Observed) (lags bool, err error) {
	lags, err = s.observeMore(ctx, obs)
	s.noteFailure(ctx, obs.SequentialJob, err)
	return lags && err == nil, err
}

// observeMore adds what the caches of children do not show. It returns true if they lack a child that the API has.
func (s *Syncer) observeMore(ctx context.Context, obs *plan.Observed) (bool, error) {
	if lags, err := s.lags(ctx, *obs); err != nil || lags {
		return lags, err
	}
	if err := s.observeOthers(ctx, obs); err != nil {
		return false, err
	}
	if err := s.observeRestore(ctx, obs); err != nil {
		return false, err
	}
	if lags, err := s.observeEnd(ctx, obs); err != nil || lags {
		return lags, err
	}
	s.observePods(ctx, obs)
	return false, nil
}

// observeEnd finds out whether a child that no cache shows is gone, before the finalizer is removed. It returns true if it is there.
func (s *Syncer) observeEnd(ctx context.Context, obs *plan.Observed) (bool, error) {
	ref := plan.MissingChild(*obs)
	if ref == nil {
		return false, nil
	}
	there, err := s.there(ctx, obs.SequentialJob, *ref)
	obs.Gone = !there
	return there, err
}

// observePods reads from the API what the decision needs to know of pods, which no cache shows in full.
func (s *Syncer) observePods(ctx context.Context, obs *plan.Observed) {
	if query := plan.MissingEarlier(*obs); query != nil {
		obs.Earlier = s.observeEarlier(ctx, obs.SequentialJob, *query)
	}
	if job := plan.MissingCause(*obs); job != nil {
		if cause := s.deps.FirstCause(ctx, obs.SequentialJob.Namespace, *job); cause != nil {
			obs.Causes = map[types.UID]*jobsetv1alpha2.FailureCause{job.UID: cause}
		}
	}
}

// observeRestore finds out whether the sequence is as a backup had it, if that matters.
func (s *Syncer) observeRestore(ctx context.Context, obs *plan.Observed) error {
	if !plan.RestoreMatters(*obs) {
		return nil
	}
	state, err := s.deps.Restore(ctx, obs.SequentialJob)
	if err == nil {
		obs.Restored, obs.EditedSinceRestore, obs.ActedSinceRestore = state.Restored, state.Edited, state.Acted
	}
	return err
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
func (s *Syncer) lags(ctx context.Context, obs plan.Observed) (bool, error) {
	ref := plan.Unseen(obs)
	if ref == nil {
		return false, nil
	}
	return s.there(ctx, obs.SequentialJob, *ref)
}

// there returns whether the API has a child, of any UID if that is not known.
func (s *Syncer) there(ctx context.Context, sj *batchv1alpha1.SequentialJob, ref plan.ChildRef) (bool, error) {
	if ref.Kind == batchv1alpha1.StepKindJobSet {
		return exists(ctx, s.jobSets, sj, ref)
	}
	return exists(ctx, s.jobs, sj, ref)
}

// exists asks the API for a child. One that lost the label by which it is selected gets it back, because no cache shows it.
func exists[T metav1.Object](ctx context.Context, w *children.Writer[T], sj *batchv1alpha1.SequentialJob, ref plan.ChildRef) (bool, error) {
	child, err := w.Get(ctx, sj.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading child %s/%s, which no cache shows: %w", sj.Namespace, ref.Name, err)
	case ref.UID != "" && child.GetUID() != ref.UID || !metav1.IsControlledBy(child, sj):
		return false, nil
	}
	_, err = restoreLabel(ctx, w, sj, child)
	return true, err
}

// observeOthers adds what else than children belongs to the sequence.
func (s *Syncer) observeOthers(ctx context.Context, obs *plan.Observed) (err error) {
	if s.deps.Queues != nil && plan.NamesQueue(*obs) {
		if obs.Queue, err = s.deps.Queues.Queue(ctx, obs.SequentialJob, plan.Current(*obs)); err != nil {
			return err
		}
	}
	key := cache.MetaObjectToName(obs.SequentialJob)
	s.observeContest(ctx, key, obs)
	s.observeRefusedPods(key, obs)
	pods, reason, err := s.deps.Caches.Unschedulable(obs.SequentialJob)
	if since := children.Since(s.unschedulable, key, err == nil && pods > 0, obs.Now.Time); !since.IsZero() {
		obs.Unschedulable = plan.Unschedulable{Pods: pods, Reason: reason, Since: since}
	}
	return err
}

// observeContest finds out who suspends the current child again and again. Its name is in the API only: caches do not
// keep the managers of fields.
func (s *Syncer) observeContest(ctx context.Context, key cache.ObjectName, obs *plan.Observed) {
	ref := plan.Current(*obs)
	if ref.UID == "" || !s.resumptions.Contested(key, resumption(obs.SequentialJob, ref)) {
		return
	}
	var child metav1.Object
	var err error
	if ref.Kind == batchv1alpha1.StepKindJobSet {
		child, err = s.jobSets.Get(ctx, obs.SequentialJob.Namespace, ref.Name)
	} else {
		child, err = s.jobs.Get(ctx, obs.SequentialJob.Namespace, ref.Name)
	}
	obs.Contest = &plan.Contest{}
	if err == nil {
		obs.Contest.By = children.ManagerOf(child, "spec", "suspend")
	}
}
