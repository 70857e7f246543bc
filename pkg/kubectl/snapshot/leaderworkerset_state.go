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

// Every returns the replicas that exist or should, by index: for those that should and do not, one without children.
func (g *LeaderWorkerSet) Every() []*Replica {
	out := make([]*Replica, 0, max(len(g.Replicas), g.Wanted()))
	next := 0
	fill := func(end int) {
		for ; next < min(end, g.Wanted()); next++ {
			out = append(out, &Replica{Index: next})
		}
	}
	for _, replica := range g.Replicas {
		fill(replica.Index)
		out = append(out, replica)
		next = max(next, replica.Index+1)
	}
	fill(g.Wanted())
	return out
}

// Exists returns whether the replica has a child.
func (p *Replica) Exists() bool { return p.Leader != nil || p.Workers != nil || len(p.Pods) > 0 }

// Surge returns whether the replica is above the replicas of the set.
func (g *LeaderWorkerSet) Surge(replica *Replica) bool { return replica.Index >= g.Wanted() }

// Updated returns whether the replica is of the current revision.
func (g *LeaderWorkerSet) Updated(replica *Replica) bool {
	return replica.Revision() != "" && replica.Revision() == g.Revision()
}

// Mixed returns whether the workers of a replica are not of the revision of their leader. Those of a former leader, which
// go with it, do not count.
func (p *Replica) Mixed() bool {
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

// StateOf returns what a replica does, in one of the words for Jobs, and why.
func (g *LeaderWorkerSet) StateOf(replica *Replica) (state, message string) {
	status := ptr.Deref(replica.Status, leaderworkersetv1.GroupStatus{})
	switch {
	case !replica.Exists():
		return g.absent()
	case replica.Leader == nil:
		return JobTerminating, "the pods of the former group are being deleted"
	case replica.Leader.DeletionTimestamp != nil:
		return JobTerminating, whyDeleted(replica.Leader, &status)
	case status.RestartAt != nil && status.RestartAt.After(g.Now):
		return JobFailed, fmt.Sprintf("is recreated at %s, after %s in a row%s", status.RestartAt.UTC().Format(time.RFC3339),
			cli.Count(int(status.RestartsInRow), "failure"), causeInWords(status.FirstCause))
	case replica.Ready(g.Size(replica)):
		return JobReady, ""
	case status.Failed && status.RestartedLeader == replica.Leader.UID:
		return JobFailed, "has used up its " + cli.Count(int(status.Restarts), "restart") + causeInWords(status.FirstCause)
	case replica.Workers == nil && g.Size(replica) > 1:
		return JobStarting, g.whyNoWorkers(replica)
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

// absent explains why replicas do not exist, as far as the set itself shows it.
func (g *LeaderWorkerSet) absent() (state, message string) {
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

// whyNoWorkers explains why a replica has no StatefulSet of workers, as far as its leader shows it.
func (g *LeaderWorkerSet) whyNoWorkers(replica *Replica) string {
	_, exclusive := g.Set.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey]
	switch {
	case g.Set.Spec.StartupPolicy == leaderworkersetv1.StartupPolicyLeaderReady && !PodReady(replica.Leader):
		return "the workers are created once the leader is ready (startupPolicy)"
	case exclusive && replica.Leader.Spec.NodeName == "":
		return "the workers are created once the leader has a node (exclusive placement)"
	}
	return "the workers are not created yet"
}

// causeInWords says in few words why a replica failed.
func causeInWords(cause *jobsetv1alpha2.FailureCause) string {
	switch {
	case cause == nil || cause.Pod == "":
		return ""
	case cause.ExitCode != nil:
		return fmt.Sprintf(": pod %s ended with exit code %d", cause.Pod, *cause.ExitCode)
	}
	return cli.Clean(fmt.Sprintf(": pod %s: %s", cause.Pod, cmp.Or(cause.Reason, cause.Message)))
}

// ReplicaCounts are the numbers of a LeaderWorkerSet, as its status has them. Those of a surge are counted too.
type ReplicaCounts struct {
	// ReplicasReady and ReplicasUpdated are the numbers of replicas that are ready, and of those of the current revision.
	ReplicasReady   int `json:"groupsReady"`
	ReplicasUpdated int `json:"groupsUpdated"`
	// ReplicasWanted is the number of replicas of the spec, and ReplicaSize the number of pods of each; absent if that differs.
	ReplicasWanted int `json:"groupsWanted"`
	ReplicaSize    int `json:"groupSize,omitempty"`
}

// ReadyOf are the replicas that are ready, of those that are wanted, like "1/2".
func (g ReplicaCounts) ReadyOf() string {
	return fmt.Sprintf("%d/%d", g.ReplicasReady, g.ReplicasWanted)
}

// LeaderWorkerSetSummary is the state of a LeaderWorkerSet with its numbers.
type LeaderWorkerSetSummary struct {
	Phase
	ReplicaCounts
}

// SummarizeLeaderWorkerSet returns the state of a LeaderWorkerSet.
func SummarizeLeaderWorkerSet(set *leaderworkersetv1.LeaderWorkerSet) LeaderWorkerSetSummary {
	known := helper.Summarize(set)
	return LeaderWorkerSetSummary{Phase{State: known.Phase, Reason: known.Reason, Message: cli.Clean(known.Message)}, ReplicaCounts{
		ReplicasReady: int(set.Status.ReadyReplicas), ReplicasUpdated: int(set.Status.UpdatedReplicas),
		ReplicasWanted: int(helper.Replicas(set)), ReplicaSize: int(helper.Size(set)),
	}}
}
