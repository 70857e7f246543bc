// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// GroupCounts are the numbers of a LeaderWorkerSet, as its status has them. Those of a surge are counted too.
type GroupCounts struct {
	// GroupsReady and GroupsUpdated are the numbers of groups that are ready, and of those of the current revision.
	GroupsReady   int `json:"groupsReady"`
	GroupsUpdated int `json:"groupsUpdated"`
	// GroupsWanted is the number of groups of the spec, and GroupSize the number of pods of each; absent if that differs.
	GroupsWanted int `json:"groupsWanted"`
	GroupSize    int `json:"groupSize,omitempty"`
}

// ReadyOf are the groups that are ready, of those that are wanted, like "1/2".
func (g GroupCounts) ReadyOf() string { return fmt.Sprintf("%d/%d", g.GroupsReady, g.GroupsWanted) }

// GroupsSummary is the state of a LeaderWorkerSet with its numbers.
type GroupsSummary struct {
	Phase
	GroupCounts
}

// SummarizeGroups returns the state of a LeaderWorkerSet.
func SummarizeGroups(set *leaderworkersetv1.LeaderWorkerSet) GroupsSummary {
	state, c := helper.Phase(set)
	s := GroupsSummary{Phase{State: state}, GroupCounts{
		GroupsReady: int(set.Status.ReadyReplicas), GroupsUpdated: int(set.Status.UpdatedReplicas),
		GroupsWanted: int(helper.Replicas(set)), GroupSize: int(helper.Size(set)),
	}}
	if c != nil {
		s.Reason, s.Message = c.Reason, cli.Clean(c.Message)
	}
	return s
}
