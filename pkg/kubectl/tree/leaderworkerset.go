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

// Groups is a LeaderWorkerSet, and what -o json prints. Its fields are described in docs/kubectl.md.
type Groups struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	snapshot.GroupsSummary
	// Revision is the key of the current revision. Absent before the leader StatefulSet exists.
	Revision string `json:"revision,omitempty"`
	// Partition is the index from which on groups have the current revision.
	Partition int `json:"partition,omitempty"`
	// Restarts is the sum of the restarts of groups after failures, and RestartLimit how many each of them may have; absent for no limit.
	Restarts     int         `json:"restarts"`
	RestartLimit *int32      `json:"restartLimit,omitempty"`
	CreateTime   metav1.Time `json:"createTime"`
	Groups       []PodGroup  `json:"groups"`
}

// PodGroup is a group that exists or should.
type PodGroup struct {
	Index int    `json:"index"`
	State string `json:"state"`
	// Message explains the state: what the group waits for, or why it failed.
	Message string `json:"message,omitempty"`
	// Ready is the number of pods that are ready, of Size.
	Ready int `json:"ready"`
	Size  int `json:"size"`
	// Revision is the key of the revision of the group, and Updated whether it is the current one.
	Revision string `json:"revision,omitempty"`
	Updated  bool   `json:"updated"`
	// Surge means that the group is above the replicas of the set.
	Surge    bool `json:"surge,omitempty"`
	Restarts int  `json:"restarts"`
	// FirstCause is why the group was last recreated after a failure.
	FirstCause *jobsetv1alpha2.FailureCause `json:"firstCause,omitempty"`
	CreateTime *metav1.Time                 `json:"createTime,omitempty"`
	Pods       []Pod                        `json:"pods,omitempty"`

	// unit is the group as what is chosen and shown like the Jobs of other trees. Its name is the index.
	unit *Job
}

// LeaderWorkerSet is the Loader of LeaderWorkerSets.
func LeaderWorkerSet(ctx context.Context, c *cli.Clients, name string) (View, error) {
	g, err := snapshot.LoadGroups(ctx, c, name, true)
	if err != nil {
		return nil, err
	}
	return newGroups(g), nil
}

// newGroups derives the tree from what was read.
func newGroups(g *snapshot.Groups) *Groups {
	set := g.Set
	t := &Groups{
		Name: set.Name, Namespace: set.Namespace, GroupsSummary: snapshot.SummarizeGroups(set), Revision: g.Revision(),
		CreateTime:   set.CreationTimestamp,
		RestartLimit: set.Spec.LeaderWorkerTemplate.MaxGroupRestarts, Groups: []PodGroup{},
	}
	if g.Leader != nil && g.Leader.Spec.UpdateStrategy.RollingUpdate != nil {
		t.Partition = int(ptr.Deref(g.Leader.Spec.UpdateStrategy.RollingUpdate.Partition, 0))
	}
	for i := range set.Status.Groups {
		t.Restarts += int(set.Status.Groups[i].Restarts)
	}
	for _, group := range g.Every() {
		t.Groups = append(t.Groups, newPodGroup(g, group))
	}
	return t
}

func newPodGroup(g *snapshot.Groups, group *snapshot.PodGroup) PodGroup {
	out := PodGroup{
		Index: group.Index, Size: g.Size(group), Revision: group.Revision(), Updated: g.Updated(group), Surge: g.Surge(group),
		Restarts: group.Restarts(),
	}
	if group.Leader != nil {
		out.CreateTime = &group.Leader.CreationTimestamp
	}
	if group.Status != nil {
		out.FirstCause = group.Status.FirstCause
	}
	for _, pod := range group.Pods {
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
	out.State, out.Message = g.StateOf(group)
	if !out.Updated && out.Message == "" && g.Leader != nil {
		out.Message = "of an earlier revision"
	}
	return out.withUnit()
}

// withUnit completes the group.
func (p PodGroup) withUnit() PodGroup {
	p.unit = &Job{
		Name: strconv.Itoa(p.Index), Index: p.Index, State: p.State, Message: p.Message, Ready: p.Ready, Size: p.Size, Restarts: p.Restarts,
		CreateTime: p.CreateTime, Pods: p.Pods,
	}
	return p
}
