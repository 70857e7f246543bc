// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// likeAnyOther defers the status of a set as if it was never suspended.
func likeAnyOther(o plan.Observed, p plan.Plan, r plan.Results) plan.Outcome {
	never := func(status *jobsetv1alpha2.JobSetStatus) *jobsetv1alpha2.JobSetStatus {
		other := status.DeepCopy()
		other.Conditions = slices.DeleteFunc(other.Conditions, func(c metav1.Condition) bool {
			return c.Type == jobsetv1alpha2.JobSetSuspended && c.Status == metav1.ConditionFalse
		})
		return other
	}
	other, wrong := o, p
	other.JobSet = o.JobSet.DeepCopy()
	other.JobSet.Status = *never(&o.JobSet.Status)
	if p.Status != nil {
		wrong.Status = never(p.Status)
	}
	if out := plan.Finish(other, wrong, r); out.DeferStatus > 0 {
		return out
	}
	return plan.Finish(o, p, r)
}

// sameOrder creates the same Jobs first again, whatever became of them.
func sameOrder(o plan.Observed, p plan.Plan, r plan.Results) plan.Outcome {
	out := plan.Finish(o, p, r)
	out.CreateFrom = 0
	return out
}

// hushed does not record that Jobs are refused.
func hushed(o plan.Observed, p plan.Plan, r plan.Results) plan.Outcome {
	r.Refusals = nil
	return plan.Finish(o, p, r)
}

// silent does not record that names of Jobs are taken, and looks for them no more.
func silent(o plan.Observed, p plan.Plan, r plan.Results) plan.Outcome {
	r.Creations = slices.Clone(r.Creations)
	for i, result := range r.Creations {
		if result == plan.NameTaken {
			r.Creations[i] = plan.Exists
		}
	}
	return plan.Finish(o, p, r)
}
