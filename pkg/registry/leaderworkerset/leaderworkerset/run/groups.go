// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

func wanted(set *leaderworkerset.LeaderWorkerSet) int32 {
	return max(ptr.Deref(set.Spec.Replicas, 1), 0)
}

// attemptOf returns the number of the life of a group that ended with its first cause: a failed group is still in it, and others have been
// recreated since.
func attemptOf(g *leaderworkerset.GroupStatus) int32 {
	if g.Failed {
		return g.Restarts + 1
	}
	return g.Restarts
}

// sortByTime sorts failures, the newest last. Those whose time is not known come first.
func sortByTime(failures []archive.RunFailure) {
	slices.SortStableFunc(failures, func(a, b archive.RunFailure) int {
		return ptr.Deref(a.Time, metav1.Time{}).Compare(ptr.Deref(b.Time, metav1.Time{}).Time)
	})
}
