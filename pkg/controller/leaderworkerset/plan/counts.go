// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

const (
	// countsPerGroup is by how much each group of a set lets counts in the status be older, and countsMost how old they
	// are at most. While many groups change, most counts are on their way from one that matters to the next, and are
	// written together.
	countsPerGroup, countsMost = 20 * time.Millisecond, 5 * time.Second
)

// countsMayWait returns how long the next status may wait for other changes, because nothing but counts differs from
// the stored one; 0 for one that is written now. Counts that complete something do not wait.
func countsMayWait(o Observed, next *leaderworkersetv1.LeaderWorkerSetStatus) time.Duration {
	wanted := helper.Replicas(o.Set)
	if next == nil || next.Replicas == wanted && next.ReadyReplicas == wanted && next.UpdatedReplicas == wanted {
		return 0
	}
	stored, rest := &o.Set.Status, *next
	rest.Replicas, rest.ReadyReplicas, rest.UpdatedReplicas = stored.Replicas, stored.ReadyReplicas, stored.UpdatedReplicas
	if !equality.Semantic.DeepEqual(stored, &rest) {
		return 0
	}
	return max(0, min(time.Duration(wanted)*countsPerGroup, countsMost)-o.CountsWaited)
}
