// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// The states of what does not exist.
const (
	Missing = "Missing" // it should exist
	Removed = "Removed" // it is not needed any more
)

// Every returns the groups that exist or should, by index: for those that should and do not, one without children.
func (g *Groups) Every() []*PodGroup {
	out := make([]*PodGroup, 0, max(len(g.Groups), g.Replicas()))
	next := 0
	fill := func(end int) {
		for ; next < min(end, g.Replicas()); next++ {
			out = append(out, &PodGroup{Index: next})
		}
	}
	for _, group := range g.Groups {
		fill(group.Index)
		out = append(out, group)
		next = max(next, group.Index+1)
	}
	fill(g.Replicas())
	return out
}

// Exists returns whether the group has a child.
func (p *PodGroup) Exists() bool { return p.Leader != nil || p.Workers != nil || len(p.Pods) > 0 }

// Surge returns whether the group is above the replicas of the set.
func (g *Groups) Surge(group *PodGroup) bool { return group.Index >= g.Replicas() }

// Updated returns whether the group is of the current revision.
func (g *Groups) Updated(group *PodGroup) bool {
	return group.Revision() != "" && group.Revision() == g.Revision()
}

// Mixed returns whether the workers of a group are not of the revision of their leader. Those of a former leader, which
// go with it, do not count.
func (p *PodGroup) Mixed() bool {
	if p.Leader == nil || p.Leader.DeletionTimestamp != nil || p.Workers == nil || !metav1.IsControlledBy(p.Workers, p.Leader) {
		return false
	}
	if Revision(p.Workers) != Revision(p.Leader) {
		return true
	}
	return slices.ContainsFunc(p.Pods, func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp == nil && metav1.IsControlledBy(pod, p.Workers) && Revision(pod) != Revision(p.Leader)
	})
}

// StateOf returns what a group does, in one of the words for Jobs, and why.
func (g *Groups) StateOf(group *PodGroup) (state, message string) {
	status := ptr.Deref(group.Status, leaderworkersetv1.GroupStatus{})
	switch {
	case !group.Exists():
		return g.absent()
	case group.Leader == nil:
		return JobTerminating, "the pods of the former group are being deleted"
	case group.Leader.DeletionTimestamp != nil:
		return JobTerminating, whyDeleted(group.Leader, &status)
	case status.RestartAt != nil && status.RestartAt.After(g.Now):
		return JobFailed, fmt.Sprintf("is recreated at %s, after %s in a row%s", status.RestartAt.UTC().Format(time.RFC3339),
			cli.Count(int(status.RestartsInRow), "failure"), causeInWords(status.FirstCause))
	case group.Ready(g.Size(group)):
		return JobReady, ""
	case status.Failed && status.RestartedLeader == group.Leader.UID:
		return JobFailed, "has used up its " + cli.Count(int(status.Restarts), "restart") + causeInWords(status.FirstCause)
	case group.Workers == nil && g.Size(group) > 1:
		return JobStarting, g.whyNoWorkers(group)
	}
	return JobStarting, ""
}

// whyDeleted explains why a leader is being deleted, as far as that is on record.
func whyDeleted(leader *corev1.Pod, status *leaderworkersetv1.GroupStatus) string {
	if status.RestartedLeader != leader.UID {
		return ""
	}
	return "is being recreated" + causeInWords(status.FirstCause)
}

// absent explains why groups do not exist, as far as the set itself shows it.
func (g *Groups) absent() (state, message string) {
	switch {
	case g.Set.DeletionTimestamp != nil:
		return Removed, "the set is being deleted"
	case g.Leader == nil && g.Set.Status.ObservedGeneration == 0:
		return Missing, "the controller has not acted on the set yet"
	case g.Leader == nil:
		return Missing, "the StatefulSet " + g.Set.Name + " does not exist"
	}
	return Missing, "not created yet; ask `kubectl jobset why lws/" + g.Set.Name + "` if this stays"
}

// whyNoWorkers explains why a group has no StatefulSet of workers, as far as its leader shows it.
func (g *Groups) whyNoWorkers(group *PodGroup) string {
	_, exclusive := g.Set.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey]
	switch {
	case g.Set.Spec.StartupPolicy == leaderworkersetv1.StartupPolicyLeaderReady && !PodReady(group.Leader):
		return "the workers are created once the leader is ready (startupPolicy)"
	case exclusive && group.Leader.Spec.NodeName == "":
		return "the workers are created once the leader has a node (exclusive placement)"
	}
	return "the workers are not created yet"
}

// causeInWords says in few words why a group failed.
func causeInWords(cause *jobsetv1alpha2.FailureCause) string {
	switch {
	case cause == nil || cause.Pod == "":
		return ""
	case cause.ExitCode != nil:
		return fmt.Sprintf(": pod %s ended with exit code %d", cause.Pod, *cause.ExitCode)
	}
	return cli.Clean(fmt.Sprintf(": pod %s: %s", cause.Pod, cmp.Or(cause.Reason, cause.Message)))
}

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
