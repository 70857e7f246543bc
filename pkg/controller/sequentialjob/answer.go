// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// Answer adds what a decision asks for, most of which is in the API only. It reads, and changes nothing.
func (k loopKind) Answer(ctx context.Context, obs *plan.Observed, p plan.Plan) (err error) {
	defer func() { k.noteFailure(ctx, obs.SequentialJob, err) }()
	sj, asks := obs.SequentialJob, p.Asks
	if asks.Unseen != nil {
		if obs.Unseen, err = k.live(ctx, sj, *asks.Unseen, "which no cache shows"); err != nil {
			return err
		}
	}
	if asks.Queue != nil {
		if obs.Queue, err = k.queueOf(ctx, sj, *asks.Queue); err != nil {
			return err
		}
	}
	if asks.Restored {
		state, err := k.deps.Restore(ctx, sj)
		if err != nil {
			return err
		}
		obs.Restored = state.Known()
	}
	if asks.Contest != nil {
		obs.Contest = k.contestOf(ctx, sj, *asks.Contest)
	}
	if asks.FirstCause != nil {
		cause := k.deps.FirstCause(ctx, sj.Namespace, *asks.FirstCause)
		obs.FirstCause = hostplan.Obtained(ptr.Deref(cause, jobsetv1alpha2.FailureCause{}), cause != nil)
	}
	if asks.Earlier != nil {
		k.addEarlier(ctx, obs, *asks.Earlier)
	}
	return nil
}

// queueOf returns what is known of Kueue; none if nothing can be.
func (s *Syncer) queueOf(ctx context.Context, sj *batchv1alpha1.SequentialJob, child plan.ChildRef) (hostplan.Known[plan.Queue], error) {
	if s.deps.Queues == nil {
		return hostplan.None[plan.Queue](), nil
	}
	q, err := s.deps.Queues.Queue(ctx, sj, child)
	return hostplan.Of(q), err
}

// live returns a child as the API has it, of any UID if that is not known. Errors say why it is read.
func (s *Syncer) live(ctx context.Context, sj *batchv1alpha1.SequentialJob, ref plan.ChildRef,
	why string) (hostplan.Known[plan.LiveChild], error) {
	if ref.Kind == batchv1alpha1.StepKindJobSet {
		return read(ctx, s.jobSets, sj, ref, why, plan.ChildOfJobSet)
	}
	return read(ctx, s.jobs, sj, ref, why, plan.ChildOfJob)
}

// read asks the API for a child.
func read[T metav1.Object](ctx context.Context, w *children.Writer[T], sj *batchv1alpha1.SequentialJob, ref plan.ChildRef, why string,
	view func(T) plan.Child) (none hostplan.Known[plan.LiveChild], _ error) {
	object, err := w.Get(ctx, sj.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return hostplan.None[plan.LiveChild](), nil
	case err != nil:
		return none, fmt.Errorf("reading child %s/%s, %s: %w", sj.Namespace, ref.Name, why, err)
	case ref.UID != "" && object.GetUID() != ref.UID || !metav1.IsControlledBy(object, sj):
		return hostplan.None[plan.LiveChild](), nil
	}
	return hostplan.Of(plan.LiveChild{Child: view(object), Stripped: len(children.Lost(object, selecting(sj))) > 0, Meta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Labels: object.GetLabels(), ManagedFields: object.GetManagedFields(),
	}}), nil
}

// contestOf finds out who suspends a child again and again. Its name is in the API only: caches do not keep the managers of fields.
func (s *Syncer) contestOf(ctx context.Context, sj *batchv1alpha1.SequentialJob, ref plan.ChildRef) hostplan.Known[plan.Contest] {
	var contested *children.UndoneError
	if !errors.As(s.guardOf(ref.Kind).Changing(sj, nameOf(ref), theSuspension), &contested) {
		return hostplan.None[plan.Contest]()
	}
	var child metav1.Object
	var err error
	if ref.Kind == batchv1alpha1.StepKindJobSet {
		child, err = s.jobSets.Get(ctx, sj.Namespace, ref.Name)
	} else {
		child, err = s.jobs.Get(ctx, sj.Namespace, ref.Name)
	}
	contest := plan.Contest{Next: contested.Next}
	if err == nil {
		contest.By = children.ManagerOf(child, "spec", "suspend")
	}
	return hostplan.Of(contest)
}
