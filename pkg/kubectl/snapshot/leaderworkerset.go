// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// LeaderWorkerSet is a LeaderWorkerSet with its children, as read at one time.
type LeaderWorkerSet struct {
	// Set is the set itself.
	Set *leaderworkersetv1.LeaderWorkerSet
	// Leader is the StatefulSet of the leader pods; nil if there is none.
	Leader *appsv1.StatefulSet
	// Replicas are the replicas that have a pod or a StatefulSet, by index.
	Replicas []*Replica
	// Now is when the reading began.
	Now time.Time
}

// Replica is a leader with its workers.
type Replica struct {
	// Index of the replica.
	Index int
	// Leader is the leader pod; nil if there is none.
	Leader *corev1.Pod
	// Workers is the StatefulSet of the workers; nil if there is none.
	Workers *appsv1.StatefulSet
	// Pods are all pods, the leader first, then the workers by index.
	Pods []*corev1.Pod
	// Status is what the set has on record of the replica; nil for one that was never recreated.
	Status *leaderworkersetv1.GroupStatus
}

// LoadLeaderWorkerSet reads a LeaderWorkerSet: one list call for each kind. Pods are left out on request, because they are the many.
func LoadLeaderWorkerSet(ctx context.Context, c *cli.Clients, name string, withPods bool) (*LeaderWorkerSet, error) {
	now := time.Now()
	var set *leaderworkersetv1.LeaderWorkerSet
	var sets *appsv1.StatefulSetList
	pods := &corev1.PodList{}
	options := metav1.ListOptions{LabelSelector: leaderworkersetv1.SetNameLabelKey + "=" + name, ResourceVersion: "0"}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		set, err = c.JobSets.LeaderworkersetV1().LeaderWorkerSets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	group.Go(func() (err error) {
		if sets, err = c.Kube.AppsV1().StatefulSets(c.Namespace).List(ctx, options); err != nil {
			err = fmt.Errorf("listing the statefulsets of leaderworkerset %s: %w", name, err)
		}
		return err
	})
	if withPods {
		group.Go(func() (err error) {
			if pods, err = c.Kube.CoreV1().Pods(c.Namespace).List(ctx, options); err != nil {
				err = fmt.Errorf("listing the pods of leaderworkerset %s: %w", name, err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return AssembleLeaderWorkerSet(set, sets.Items, pods.Items, now), nil
}

// AssembleLeaderWorkerSet returns the set with those of the objects that belong to it. Pods that another object of the same name
// left behind belong to it only while they are being deleted: until then, they hold the names of its own.
func AssembleLeaderWorkerSet(set *leaderworkersetv1.LeaderWorkerSet, sets []appsv1.StatefulSet, pods []corev1.Pod,
	now time.Time) *LeaderWorkerSet {
	g := &LeaderWorkerSet{Set: set, Now: now}
	replicas := replicasByIndex{}
	for i := range sets {
		if sets[i].Name == set.Name && metav1.IsControlledBy(&sets[i], set) {
			g.Leader = &sets[i]
		}
	}
	replicas.keepLeaders(g.Leader, pods)
	for i := range sets {
		if index := ReplicaIndex(&sets[i]); index >= 0 && sets[i].Name != set.Name {
			replicas.at(index).Workers = &sets[i]
		}
	}
	replicas.keepPods(pods)
	for i := range set.Status.Groups {
		if replica := replicas[int(set.Status.Groups[i].Index)]; replica != nil {
			replica.Status = &set.Status.Groups[i]
		}
	}
	for _, index := range slices.Sorted(maps.Keys(replicas)) {
		slices.SortFunc(replicas[index].Pods, func(a, b *corev1.Pod) int {
			return cmp.Or(cmp.Compare(WorkerIndex(a), WorkerIndex(b)), cmp.Compare(a.Name, b.Name))
		})
		g.Replicas = append(g.Replicas, replicas[index])
	}
	return g
}

// replicasByIndex are replicas by their indexes.
type replicasByIndex map[int]*Replica

// at returns the replica with the index, which exists from then on.
func (g replicasByIndex) at(index int) *Replica {
	if g[index] == nil {
		g[index] = &Replica{Index: index}
	}
	return g[index]
}

// keepLeaders keeps the pods of the leader StatefulSet.
func (g replicasByIndex) keepLeaders(leaders *appsv1.StatefulSet, pods []corev1.Pod) {
	for i := range pods {
		if index := ReplicaIndex(&pods[i]); index >= 0 && WorkerIndex(&pods[i]) == 0 && controls(leaders, &pods[i]) {
			g.at(index).Leader = &pods[i]
		}
	}
}

// keepPods keeps the leaders that are known and the pods of their workers.
func (g replicasByIndex) keepPods(pods []corev1.Pod) {
	for i := range pods {
		index := ReplicaIndex(&pods[i])
		if index < 0 {
			continue
		}
		pod, replica := &pods[i], ptr.Deref(g[index], Replica{})
		if pod == replica.Leader || WorkerIndex(pod) != 0 && controls(replica.Workers, pod) {
			g.at(index).Pods = append(g.at(index).Pods, pod)
		}
	}
}

// controls returns whether the StatefulSet controls the pod. One that is not known is taken to do so, and so is any
// while the pod is being deleted.
func controls(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	return set == nil || pod.DeletionTimestamp != nil || metav1.IsControlledBy(pod, set)
}

// Pods returns the pods of all replicas, by replica and then by worker index.
func (g *LeaderWorkerSet) Pods() (pods []*corev1.Pod) {
	for _, replica := range g.Replicas {
		pods = append(pods, replica.Pods...)
	}
	return pods
}

// Wanted is the number of replicas that the set wants, without those of a surge.
func (g *LeaderWorkerSet) Wanted() int { return int(helper.Replicas(g.Set)) }

// Size is the number of pods of a replica: that which its pods carry, or else that of the spec.
func (g *LeaderWorkerSet) Size(replica *Replica) int {
	if replica.Leader != nil {
		if size := number(replica.Leader.Annotations[leaderworkersetv1.SizeAnnotationKey]); size > 0 {
			return size
		}
	}
	return int(helper.Size(g.Set))
}

// Revision is the key of the current revision; "" before the leader StatefulSet exists.
func (g *LeaderWorkerSet) Revision() string {
	if g.Leader == nil {
		return ""
	}
	return Revision(g.Leader)
}

// Revision returns the key of the revision of a child.
func Revision(child metav1.Object) string { return child.GetLabels()[leaderworkersetv1.RevisionKey] }

// WorkerIndex returns the index of a pod in its replica, 0 for a leader; -1 when it carries none.
func WorkerIndex(pod *corev1.Pod) int {
	return number(pod.Labels[leaderworkersetv1.WorkerIndexLabelKey])
}

// ReplicaIndex returns the index of the replica of a child: that of its label, or of the name of a leader pod that has
// none; -1 if there is none.
func ReplicaIndex(child metav1.Object) int {
	if index := number(child.GetLabels()[leaderworkersetv1.GroupIndexLabelKey]); index >= 0 {
		return index
	}
	if child.GetLabels()[leaderworkersetv1.WorkerIndexLabelKey] != "0" {
		return -1
	}
	return number(child.GetName()[strings.LastIndexByte(child.GetName(), '-')+1:])
}

// Revision is the key of the revision of the replica.
func (p *Replica) Revision() string {
	switch {
	case p.Leader != nil:
		return Revision(p.Leader)
	case p.Workers != nil:
		return Revision(p.Workers)
	}
	return ""
}

// Ready returns whether the leader is ready, and all workers are available, as the controller counts it.
func (p *Replica) Ready(size int) bool {
	if p.Leader == nil || p.Leader.DeletionTimestamp != nil || p.Leader.Status.Phase != corev1.PodRunning || !PodReady(p.Leader) {
		return false
	}
	if size == 1 {
		return true
	}
	w := p.Workers
	return w != nil && ptr.Deref(w.Spec.Replicas, 1) == w.Status.AvailableReplicas && w.Status.CurrentRevision == w.Status.UpdateRevision
}

// Restarts is how often the replica was recreated after a failure.
func (p *Replica) Restarts() int {
	if p.Status == nil {
		return 0
	}
	return int(p.Status.Restarts)
}

// mostRevisions is how many revisions are read. A set has at most a tenth of them.
const mostRevisions = 1000

// Revisions returns the revisions that exist of a LeaderWorkerSet, the oldest first.
func Revisions(ctx context.Context, c *cli.Clients, set *leaderworkersetv1.LeaderWorkerSet) ([]*appsv1.ControllerRevision, error) {
	list, err := c.Kube.AppsV1().ControllerRevisions(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: leaderworkersetv1.SetNameLabelKey + "=" + set.Name, Limit: mostRevisions,
	})
	if err != nil {
		return nil, fmt.Errorf("listing the controllerrevisions of leaderworkerset %s: %w", set.Name, err)
	}
	var out []*appsv1.ControllerRevision
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], set) {
			out = append(out, &list.Items[i])
		}
	}
	slices.SortFunc(out, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}
