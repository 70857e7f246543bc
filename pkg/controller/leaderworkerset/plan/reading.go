// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	appsv1 "k8s.io/api/apps/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// Reading is what a decision has found out about large objects, so that the next one need not read them again. Objects
// of caches never change, so that the same pointers have the same content. Decisions are the same without it.
type Reading struct {
	// Revision means the same as the spec of Set; nil if no revision is known to.
	Set      *leaderworkersetv1.LeaderWorkerSet
	Revision *appsv1.ControllerRevision
	// Leader has what Applied is the hash of, which follows from Set, Key, Partition and Replicas; nil if it is not known to.
	Leader              *appsv1.StatefulSet
	Applied, Key        string
	Partition, Replicas int32
}

// hasRevision returns whether a revision is known to mean the same as the spec of the set.
func (r *Reading) hasRevision(o Observed, revision *appsv1.ControllerRevision) bool {
	return r != nil && r.Set == o.Set && r.Revision != nil && r.Revision == revision
}

// hasLeader returns whether the leader StatefulSet is known to be right.
func (r *Reading) hasLeader(o Observed, key string, t target) bool {
	return r != nil && r.Set == o.Set && r.Leader != nil && r.Leader == o.Leader && r.Applied == o.Applied && r.Key == key &&
		r.Partition == t.partition && r.Replicas == t.count
}
