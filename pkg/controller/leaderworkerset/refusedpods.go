// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/refusals"
)

// refusalReasons are the reasons of the condition PodCreationFailure.
var refusalReasons = map[children.Reason]string{
	children.FailedCreate: jobsetv1alpha2.ReasonFailedCreate, children.QuotaExceeded: jobsetv1alpha2.ReasonQuotaExceeded,
	children.Forbidden: jobsetv1alpha2.ReasonForbidden, children.AdmissionDenied: jobsetv1alpha2.ReasonAdmissionDenied,
	children.Invalid: jobsetv1alpha2.ReasonInvalid,
}

// observeRefusedPods adds the pods that the API refuses, and remembers since when there are any.
func (s *Syncer) observeRefusedPods(key cache.ObjectName, obs *plan.Observed) {
	refused := &obs.RefusedPods
	add := func(statefulSet types.UID, lacks bool) {
		refusal := s.deps.Caches.PodRefusal(statefulSet, lacks)
		if refusal == nil {
			return
		}
		if refused.StatefulSets++; refused.StatefulSets == 1 || refusal.At.After(refused.At) {
			refused.Reason, refused.Message, refused.At = refusalReasons[refusal.Reason], refusal.Message, refusal.At
		}
	}
	if obs.Leader != nil {
		add(obs.Leader.UID, plan.LacksLeaders(obs.Leader, obs.Leaders))
	}
	for i := range obs.Workers {
		add(obs.Workers[i].UID, obs.Workers[i].LacksPods())
	}
	refused.Since = children.Since(s.podsRefused, key, refused.StatefulSets > 0, obs.Now.Time)
}

// PodRefusal returns why the API refuses pods of a StatefulSet.
func (c caches) PodRefusal(statefulSet types.UID, lacks bool) *refusals.Refusal {
	return c.podRefusals.Of(statefulSet, lacks)
}

// onRefusal looks at the set of a StatefulSet whose pod was refused.
func (c *Controller) onRefusal(e *refusals.Event) {
	if statefulSet, err := c.caches.statefulSets.GetByKey(e.About().String()); err == nil && statefulSet != nil {
		c.enqueueSetOf(statefulSet)
	}
}
