// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// report sends an event about a transition of the set.
func (s *Syncer) report(obs *plan.Observed, event plan.Event) { s.send(obs, obs.Set, event) }

// reportChild sends an event about a child. What was done is about one version of the set, so that each step of an
// update has its own event. Warnings are not, so that tries before and after a status write belong to the same series.
func (s *Syncer) reportChild(obs *plan.Observed, event plan.Event) {
	if event.Type == corev1.EventTypeNormal {
		s.report(obs, event)
		return
	}
	s.send(obs, &corev1.ObjectReference{
		APIVersion: leaderworkersetv1.SchemeGroupVersion.String(), Kind: kindSet, Namespace: obs.Set.Namespace, Name: obs.Set.Name,
		UID: obs.Set.UID,
	}, event)
}

// reportStatus sends an event about a status that was not stored, unless the set has changed meanwhile.
func (s *Syncer) reportStatus(obs *plan.Observed, err error) {
	if !apierrors.IsConflict(err) {
		s.reportChild(obs, plan.StatusFailure(err))
	}
}

func (s *Syncer) send(obs *plan.Observed, regarding runtime.Object, event plan.Event) {
	var related runtime.Object
	if event.Related != "" {
		related = podReference(obs, event.Related)
	}
	s.deps.Recorder.Eventf(regarding, related, event.Type, event.Reason, event.Action, "%s",
		text.TruncateWithEllipsis(text.Printable(event.Note), children.MaxNote))
}

// podReference returns a reference to a leader pod.
func podReference(obs *plan.Observed, name string) *corev1.ObjectReference {
	ref := &corev1.ObjectReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Namespace: obs.Set.Namespace, Name: name}
	for i := range obs.Leaders {
		if obs.Leaders[i].Name == name {
			ref.UID = obs.Leaders[i].UID
		}
	}
	return ref
}
