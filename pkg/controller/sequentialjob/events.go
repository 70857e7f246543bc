// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// report sends an event about a transition of the sequence.
func (s *Syncer) report(sj *batchv1alpha1.SequentialJob, event plan.Event) { s.send(sj, event) }

// warn sends an event about a child. It regards the sequence, but not one version of it: tries before and after a status
// write then belong to the same series.
func (s *Syncer) warn(sj *batchv1alpha1.SequentialJob, event plan.Event) {
	s.send(&corev1.ObjectReference{
		APIVersion: batchv1alpha1.SchemeGroupVersion.String(), Kind: "SequentialJob", Namespace: sj.Namespace, Name: sj.Name, UID: sj.UID,
	}, event)
}

// reported sends a warning about what no condition shows, if passes have failed for some time, and returns the error.
// That something has changed meanwhile is none.
func (s *Syncer) reported(sj *batchv1alpha1.SequentialJob, err error) error {
	if err == nil || apierrors.IsConflict(err) {
		return err
	}
	key, now := cache.MetaObjectToName(sj), s.deps.Clock.Now()
	switch since := s.failing.Noted(key); {
	case since.IsZero():
		s.failing.Note(key, now)
	case now.Sub(since) >= plan.PassesAfter:
		s.warn(sj, plan.Failure(err.Error()))
	}
	return err
}

func (s *Syncer) send(regarding runtime.Object, event plan.Event) {
	children.SendEvent(s.deps.Recorder, regarding, event.Type, event.Reason, event.Note)
}
