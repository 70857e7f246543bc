// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// Children returns the sequence and its children as the caches have them.
func (k loopKind) Children(_ context.Context, key cache.ObjectName,
	sj *batchv1alpha1.SequentialJob) (*plan.Observed, []consistency.Child, error) {
	owned, err := k.deps.Caches.Children(sj)
	shown := make([]consistency.Child, 0, len(owned))
	for i := range owned {
		shown = append(shown, consistency.Child{UID: owned[i].UID, Deleting: owned[i].Deleting})
	}
	return &plan.Observed{
		SequentialJob: sj, Children: owned, RefusedSince: k.refusedSince.Noted(key), FailingSince: k.writesFail.Noted(key),
		Now: metav1.NewTime(k.deps.Clock.Now().Truncate(time.Second)),
	}, shown, err
}

// Complete adds what else the caches have about the sequence.
func (k loopKind) Complete(ctx context.Context, key cache.ObjectName, obs *plan.Observed) (lags bool, err error) {
	defer func() { k.noteFailure(ctx, obs.SequentialJob, err) }()
	if obs.Unreadable, err = k.deps.Caches.Unreadable(obs.SequentialJob); err != nil {
		return false, err
	}
	k.observeRefusedPods(key, obs)
	pods, reason, err := k.deps.Caches.Unschedulable(obs.SequentialJob)
	if since := children.Since(k.unschedulable, key, err == nil && pods > 0, obs.Now.Time); !since.IsZero() {
		obs.Unschedulable = plan.Unschedulable{Pods: pods, Reason: reason, Since: since}
	}
	return false, err
}

// observeRefusedPods adds the pods of Jobs that the API refuses, and remembers since when there are any.
func (s *Syncer) observeRefusedPods(key cache.ObjectName, obs *plan.Observed) {
	refused := false
	for i := range obs.Children {
		if c := &obs.Children[i]; c.Kind == batchv1alpha1.StepKindJob && c.End == "" {
			c.Refused = s.deps.Caches.PodRefusal(c.UID, c.LacksPods)
			refused = refused || c.Refused != nil
		}
	}
	obs.PodsRefusedSince = children.Since(s.podsRefused, key, refused, obs.Now.Time)
}

// noteAnswer remembers that a write may have changed the sequence although it failed.
func (s *Syncer) noteAnswer(key cache.ObjectName, err error) {
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		s.unanswered.Note(key, true)
	}
}

// Waits returns whether a write whose answer is not known has changed the sequence, and the cache does not show it yet: a step
// that has ended by that write must not run again.
func (k loopKind) Waits(ctx context.Context, key cache.ObjectName, sj *batchv1alpha1.SequentialJob) (bool, error) {
	if !k.unanswered.Noted(key) {
		return false, nil
	}
	live, err := k.deps.SequentialJobs(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return true, fmt.Errorf("reading sequentialjob %s after a write without an answer: %w", key, err)
	case live.UID != sj.UID || live.ResourceVersion != sj.ResourceVersion:
		return true, nil
	}
	k.unanswered.Forget(key)
	return false, nil
}
