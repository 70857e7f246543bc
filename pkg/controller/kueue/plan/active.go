// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"

// Activation is a change of spec.active of a Workload.
type Activation int

// Changes of spec.active.
const (
	// Keep leaves the Workload as it is.
	Keep Activation = iota
	// Deactivate takes the Workload out of its queue: Kueue evicts it, and its owner stops.
	Deactivate
	// Activate puts it back.
	Activate
)

// ActivationOf returns what becomes of the Workload of a child while its sequence is suspended, or is not. A Workload that an administrator
// deactivated, or Kueue after too many attempts, stays so: they had a reason that a suspension does not cancel.
func ActivationOf(w *Workload, suspended bool) Activation {
	if w == nil || w.DeletionTimestamp != nil || w.Is(ConditionFinished) {
		return Keep
	}
	_, deactivated := w.Annotations[batchv1alpha1.DeactivatedByKey]
	switch {
	case suspended && w.Active():
		return Deactivate
	case !suspended && !w.Active() && deactivated:
		return Activate
	}
	return Keep
}
