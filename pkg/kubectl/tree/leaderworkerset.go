// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// LeaderWorkerSetTree is a LeaderWorkerSet, and what -o json prints. Its fields are described in docs/kubectl.md.
type LeaderWorkerSetTree struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	snapshot.LeaderWorkerSetSummary
	// Revision is the key of the current revision. Absent before the leader StatefulSet exists.
	Revision string `json:"revision,omitempty"`
	// Partition is the index from which on replicas have the current revision.
	Partition int `json:"partition,omitempty"`
	// Restarts is the sum of the restarts of replicas after failures, and RestartLimit how many each of them may have; absent for no limit.
	Restarts     int         `json:"restarts"`
	RestartLimit *int32      `json:"restartLimit,omitempty"`
	CreateTime   metav1.Time `json:"createTime"`
	Replicas     []Replica   `json:"groups"`
}

// Replica is a replica that exists or should.
type Replica struct {
	Index int    `json:"index"`
	State string `json:"state"`
	// Message explains the state: what the replica waits for, or why it failed.
	Message string `json:"message,omitempty"`
	// Ready is the number of pods that are ready, of Size.
	Ready int `json:"ready"`
	Size  int `json:"size"`
	// Revision is the key of the revision of the replica, and Updated whether it is the current one.
	Revision string `json:"revision,omitempty"`
	Updated  bool   `json:"updated"`
	// Surge means that the replica is above the replicas of the set.
	Surge    bool `json:"surge,omitempty"`
	Restarts int  `json:"restarts"`
	// FirstCause is why the replica was last recreated after a failure.
	FirstCause *jobsetv1alpha2.FailureCause `json:"firstCause,omitempty"`
	CreateTime *metav1.Time                 `json:"createTime,omitempty"`
	Pods       []Pod                        `json:"pods,omitempty"`

	// unit is the replica as what is chosen and shown like the Jobs of other trees. Its name is the index.
	unit *Job
}

// LeaderWorkerSet is the Loader of LeaderWorkerSets.
func LeaderWorkerSet(ctx context.Context, c *cli.Clients, name string) (View, error) {
	return load(ctx, c, name, snapshot.LoadLeaderWorkerSet, newLeaderWorkerSet)
}

// newLeaderWorkerSet derives the tree from what was read.
func newLeaderWorkerSet(g *snapshot.LeaderWorkerSet) *LeaderWorkerSetTree {
	set := g.Set
	t := &LeaderWorkerSetTree{
		Name: set.Name, Namespace: set.Namespace, LeaderWorkerSetSummary: snapshot.SummarizeLeaderWorkerSet(set), Revision: g.Revision(),
		CreateTime:   set.CreationTimestamp,
		RestartLimit: set.Spec.LeaderWorkerTemplate.MaxGroupRestarts, Replicas: []Replica{},
	}
	if g.Leader != nil && g.Leader.Spec.UpdateStrategy.RollingUpdate != nil {
		t.Partition = int(ptr.Deref(g.Leader.Spec.UpdateStrategy.RollingUpdate.Partition, 0))
	}
	for i := range set.Status.Groups {
		t.Restarts += int(set.Status.Groups[i].Restarts)
	}
	for _, replica := range g.Every() {
		t.Replicas = append(t.Replicas, newReplica(g, replica))
	}
	return t
}

func newReplica(g *snapshot.LeaderWorkerSet, replica *snapshot.Replica) Replica {
	out := Replica{
		Index: replica.Index, Size: g.Size(replica), Revision: replica.Revision(), Updated: g.Updated(replica), Surge: g.Surge(replica),
		Restarts: replica.Restarts(),
	}
	if replica.Leader != nil {
		out.CreateTime = &replica.Leader.CreationTimestamp
	}
	if replica.Status != nil {
		out.FirstCause = replica.Status.FirstCause
	}
	for _, pod := range replica.Pods {
		p := newPod(pod)
		p.Revision = snapshot.Revision(pod)
		if index := snapshot.WorkerIndex(pod); index >= 0 {
			p.Index = &index
		}
		if p.Ready && !snapshot.PodEnded(pod) {
			out.Ready++
		}
		out.Pods = append(out.Pods, p)
	}
	out.State, out.Message = g.StateOf(replica)
	if !out.Updated && out.Message == "" && g.Leader != nil {
		out.Message = "of an earlier revision"
	}
	return out.withUnit()
}

// withUnit completes the replica.
func (p Replica) withUnit() Replica {
	p.unit = &Job{
		Name: strconv.Itoa(p.Index), Index: p.Index, State: p.State, Message: p.Message, Ready: p.Ready, Size: p.Size, Restarts: p.Restarts,
		CreateTime: p.CreateTime, Pods: p.Pods,
	}
	return p
}
