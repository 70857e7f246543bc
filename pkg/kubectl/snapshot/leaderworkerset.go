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

// Groups is a LeaderWorkerSet with its children, as read at one time.
type Groups struct {
	// Set is the set itself.
	Set *leaderworkersetv1.LeaderWorkerSet
	// Leader is the StatefulSet of the leader pods; nil if there is none.
	Leader *appsv1.StatefulSet
	// Groups are the groups that have a pod or a StatefulSet, by index.
	Groups []*PodGroup
	// Now is when the reading began.
	Now time.Time
}

// PodGroup is a leader with its workers.
type PodGroup struct {
	// Index of the group.
	Index int
	// Leader is the leader pod; nil if there is none.
	Leader *corev1.Pod
	// Workers is the StatefulSet of the workers; nil if there is none.
	Workers *appsv1.StatefulSet
	// Pods are all pods, the leader first, then the workers by index.
	Pods []*corev1.Pod
	// Status is what the set has on record of the group; nil for one that was never recreated.
	Status *leaderworkersetv1.GroupStatus
}

// LoadGroups reads a LeaderWorkerSet: one list call for each kind. Pods are left out on request, because they are the many.
func LoadGroups(ctx context.Context, c *cli.Clients, name string, withPods bool) (*Groups, error) {
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
	return AssembleGroups(set, sets.Items, pods.Items, now), nil
}

// AssembleGroups returns the set with those of the objects that belong to it. Pods that another object of the same name
// left behind belong to it only while they are being deleted: until then, they hold the names of its own.
func AssembleGroups(set *leaderworkersetv1.LeaderWorkerSet, sets []appsv1.StatefulSet, pods []corev1.Pod, now time.Time) *Groups {
	g := &Groups{Set: set, Now: now}
	groups := groupsByIndex{}
	for i := range sets {
		if sets[i].Name == set.Name && metav1.IsControlledBy(&sets[i], set) {
			g.Leader = &sets[i]
		}
	}
	groups.keepLeaders(g.Leader, pods)
	for i := range sets {
		if index := GroupIndex(&sets[i]); index >= 0 && sets[i].Name != set.Name {
			groups.at(index).Workers = &sets[i]
		}
	}
	groups.keepPods(pods)
	for i := range set.Status.Groups {
		if group := groups[int(set.Status.Groups[i].Index)]; group != nil {
			group.Status = &set.Status.Groups[i]
		}
	}
	for _, index := range slices.Sorted(maps.Keys(groups)) {
		slices.SortFunc(groups[index].Pods, func(a, b *corev1.Pod) int {
			return cmp.Or(cmp.Compare(WorkerIndex(a), WorkerIndex(b)), cmp.Compare(a.Name, b.Name))
		})
		g.Groups = append(g.Groups, groups[index])
	}
	return g
}

// groupsByIndex are groups by their indexes.
type groupsByIndex map[int]*PodGroup

// at returns the group with the index, which exists from then on.
func (g groupsByIndex) at(index int) *PodGroup {
	if g[index] == nil {
		g[index] = &PodGroup{Index: index}
	}
	return g[index]
}

// keepLeaders keeps the pods of the leader StatefulSet.
func (g groupsByIndex) keepLeaders(leaders *appsv1.StatefulSet, pods []corev1.Pod) {
	for i := range pods {
		if index := GroupIndex(&pods[i]); index >= 0 && WorkerIndex(&pods[i]) == 0 && controls(leaders, &pods[i]) {
			g.at(index).Leader = &pods[i]
		}
	}
}

// keepPods keeps the leaders that are known and the pods of their workers.
func (g groupsByIndex) keepPods(pods []corev1.Pod) {
	for i := range pods {
		index := GroupIndex(&pods[i])
		if index < 0 {
			continue
		}
		pod, group := &pods[i], ptr.Deref(g[index], PodGroup{})
		if pod == group.Leader || WorkerIndex(pod) != 0 && controls(group.Workers, pod) {
			g.at(index).Pods = append(g.at(index).Pods, pod)
		}
	}
}

// controls returns whether the StatefulSet controls the pod. One that is not known is taken to do so, and so is any
// while the pod is being deleted.
func controls(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	return set == nil || pod.DeletionTimestamp != nil || metav1.IsControlledBy(pod, set)
}

// Pods returns the pods of all groups, by group and then by worker index.
func (g *Groups) Pods() (pods []*corev1.Pod) {
	for _, group := range g.Groups {
		pods = append(pods, group.Pods...)
	}
	return pods
}

// Replicas is the number of groups that the set wants, without those of a surge.
func (g *Groups) Replicas() int { return int(helper.Replicas(g.Set)) }

// Size is the number of pods of a group: that which its pods carry, or else that of the spec.
func (g *Groups) Size(group *PodGroup) int {
	if group.Leader != nil {
		if size := number(group.Leader.Annotations[leaderworkersetv1.SizeAnnotationKey]); size > 0 {
			return size
		}
	}
	return int(helper.Size(g.Set))
}

// Revision is the key of the current revision; "" before the leader StatefulSet exists.
func (g *Groups) Revision() string {
	if g.Leader == nil {
		return ""
	}
	return Revision(g.Leader)
}

// Revision returns the key of the revision of a child.
func Revision(child metav1.Object) string { return child.GetLabels()[leaderworkersetv1.RevisionKey] }

// WorkerIndex returns the index of a pod in its group, 0 for a leader; -1 when it carries none.
func WorkerIndex(pod *corev1.Pod) int {
	return number(pod.Labels[leaderworkersetv1.WorkerIndexLabelKey])
}

// GroupIndex returns the index of the group of a child: that of its label, or of the name of a leader pod that has
// none; -1 if there is none.
func GroupIndex(child metav1.Object) int {
	if index := number(child.GetLabels()[leaderworkersetv1.GroupIndexLabelKey]); index >= 0 {
		return index
	}
	if child.GetLabels()[leaderworkersetv1.WorkerIndexLabelKey] != "0" {
		return -1
	}
	return number(child.GetName()[strings.LastIndexByte(child.GetName(), '-')+1:])
}

// Revision is the key of the revision of the group.
func (p *PodGroup) Revision() string {
	switch {
	case p.Leader != nil:
		return Revision(p.Leader)
	case p.Workers != nil:
		return Revision(p.Workers)
	}
	return ""
}

// Ready returns whether the leader is ready, and all workers are available, as the controller counts it.
func (p *PodGroup) Ready(size int) bool {
	if p.Leader == nil || p.Leader.DeletionTimestamp != nil || p.Leader.Status.Phase != corev1.PodRunning || !PodReady(p.Leader) {
		return false
	}
	if size == 1 {
		return true
	}
	w := p.Workers
	return w != nil && ptr.Deref(w.Spec.Replicas, 1) == w.Status.AvailableReplicas && w.Status.CurrentRevision == w.Status.UpdateRevision
}

// Restarts is how often the group was recreated after a failure.
func (p *PodGroup) Restarts() int {
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
