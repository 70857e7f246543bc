// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// observeRefusedPods adds the pods that the API refuses, and remembers since when there are any.
func (s *Syncer) observeRefusedPods(key cache.ObjectName, obs *plan.Observed) {
	add := func(statefulSet types.UID, lacks bool) {
		if refusal := s.deps.Caches.PodRefusal(statefulSet, lacks); refusal != nil {
			obs.RefusedPods = append(obs.RefusedPods, *refusal)
		}
	}
	if obs.Leader != nil {
		add(obs.Leader.UID, lacksLeaders(obs))
	}
	for i := range obs.Workers {
		add(obs.Workers[i].UID, lacksPods(&obs.Workers[i]))
	}
	obs.PodsRefusedSince = children.Since(s.podsRefused, key, len(obs.RefusedPods) > 0, obs.Now.Time)
}

// lacksLeaders returns whether the StatefulSet of leaders has fewer pods than it should.
func lacksLeaders(obs *plan.Observed) bool {
	return obs.Leader.DeletionTimestamp == nil && len(obs.Leaders) < int(ptr.Deref(obs.Leader.Spec.Replicas, 1))
}

// lacksPods returns whether there are fewer workers than there should be.
func lacksPods(w *plan.Workers) bool { return !w.Deleting && len(w.Pods) < int(w.Replicas) }
