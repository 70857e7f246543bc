// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// clockSkew is how far the clock of this controller and that of the API server, which dates pods, may differ.
const clockSkew = 5 * time.Minute

// unseen returns how many workers of a group are gone or were replaced without a process of this controller that saw
// it. All groups were complete when the set became available, and as long as it is, nothing was seen since. So a worker
// that is younger is not the one that was there then. Of sets that were not available, or have changed since, nothing
// is known.
func unseen(o Observed, g *group) (lost int) {
	since := availableSince(o)
	if since.IsZero() || o.Now.Sub(since) < clockSkew || g.index >= helper.Replicas(o.Set) {
		return 0
	}
	if w := g.workers; w == nil || w.CreatedAt.IsZero() || w.CreatedAt.After(since) || g.leader.Created.After(since) {
		return 0
	}
	lost = int(g.size) - 1
	for pod := range g.pods() {
		lost -= int(one(pod != g.leader && !pod.Created.After(since.Add(clockSkew))))
	}
	return max(0, lost)
}

// availableSince returns since when the set is available at its present spec, as stored; zero if it is not.
func availableSince(o Observed) time.Time {
	c := meta.FindStatusCondition(o.Set.Status.Conditions, leaderworkersetv1.ConditionAvailable)
	if c == nil || c.Status != metav1.ConditionTrue || o.Set.Status.ObservedGeneration != o.Set.Generation {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
