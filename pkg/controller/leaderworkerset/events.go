// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// reportStatus sends an event about a status that was not stored, unless the set has changed meanwhile. The Loop reports one that another
// party changes back.
func (s *Syncer) reportStatus(ctx context.Context, obs *plan.Observed, err error) {
	if !apierrors.IsConflict(err) && !children.IsUndone(err) {
		s.Report(ctx, obs.Set, loop.Report{Event: plan.StatusFailure(err)})
	}
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
