// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// observeRefusedPods adds the pods that the API refuses, and remembers since when there are any.
func (s *Syncer) observeRefusedPods(key cache.ObjectName, obs *plan.Observed) {
	refused := &obs.RefusedPods
	add := func(statefulSet types.UID, lacks bool) {
		refusal := s.deps.Caches.PodRefusal(statefulSet, lacks)
		if refusal == nil {
			return
		}
		if refused.StatefulSets++; refused.StatefulSets == 1 || refusal.At.After(refused.At) {
			refused.Reason, refused.Message, refused.At = refusal.Reason.Word(), refusal.Message, refusal.At
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
