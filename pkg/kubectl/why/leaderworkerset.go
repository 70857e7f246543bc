// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// The reading of LeaderWorkerSets.

// groupsKind is the kind LeaderWorkerSet.
func groupsKind() *kind {
	return &kind{
		Kind: cli.LeaderWorkerSet, noun: "set", prefix: cli.LeaderWorkerSet.Names[2] + "/", label: leaderworkersetv1.SetNameLabelKey,
		controls: "LeaderWorkerSets", children: "StatefulSets", readChildren: (*loader).readStatefulSets,
		essential: []string{"pods", "statefulsets", "events"}, queued: "LeaderWorkerSets", unqueue: unqueueGroups,
		read: (*loader).readGroupsSet, assemble: (*loader).assembleGroups, more: (*loader).readMoreOfGroups, list: listGroupsSets,
	}
}

// LeaderWorkerSet is the Diagnoser of LeaderWorkerSets.
func LeaderWorkerSet(ctx context.Context, c *cli.Clients, name string) (*Report, error) {
	evidence, err := load(ctx, c, groupsKind(), name)
	if err != nil {
		return nil, fmt.Errorf("reading leaderworkerset %s: %w", name, err)
	}
	return diagnoseGroups(evidence), nil
}

// groupsSubject is a LeaderWorkerSet as a subject.
type groupsSubject struct {
	*leaderworkersetv1.LeaderWorkerSet
}

func (s groupsSubject) manager() string { return "" }

func (s groupsSubject) ended() bool { return false }

func (s groupsSubject) observed() bool {
	return s.Status.ObservedGeneration > 0 || len(s.Status.Conditions) > 0
}

func (s groupsSubject) failedOn() string {
	for i := range s.Status.Groups {
		if cause := s.Status.Groups[i].FirstCause; cause != nil && cause.Node != "" {
			return cause.Node
		}
	}
	return ""
}

func (l *loader) readGroupsSet(ctx context.Context) error {
	set, err := l.JobSets.LeaderworkersetV1().LeaderWorkerSets(l.Namespace).Get(ctx, l.e.Name, metav1.GetOptions{})
	if err == nil {
		l.e.Set = set
	}
	return err
}

func (l *loader) readStatefulSets(ctx context.Context) {
	list, err := l.Kube.AppsV1().StatefulSets(l.Namespace).List(ctx, l.named())
	if err != nil {
		l.gap("statefulsets", err)
		return
	}
	l.sets = list.Items
}

// assembleGroups keeps the StatefulSets and pods of the set.
func (l *loader) assembleGroups() {
	l.e.Groups = snapshot.AssembleGroups(l.e.Set, l.sets, l.pods, l.e.Now)
	l.e.Pods = l.e.Groups.Pods()
}

// readMoreOfGroups are the readings for the rules that only LeaderWorkerSets have.
func (l *loader) readMoreOfGroups() []func(context.Context) {
	reads := []func(context.Context){l.readServiceOfGroups, l.readNodesOfLeaders, l.readGangs, l.readKueueOfGroups}
	if l.e.Groups.Leader == nil {
		reads = append(reads, l.readTakenSet)
	}
	return reads
}

// readTakenSet reads the StatefulSet that has the name of the leader StatefulSet, whoever owns it.
func (l *loader) readTakenSet(ctx context.Context) {
	set, err := l.Kube.AppsV1().StatefulSets(l.Namespace).Get(ctx, l.e.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		l.gap("statefulsets", err)
	case !metav1.IsControlledBy(set, l.e.Set):
		l.e.TakenSet = set
	}
}

// readServiceOfGroups reads the Service that all groups share, if they do.
func (l *loader) readServiceOfGroups(ctx context.Context) {
	if helper.UniquePerReplica(l.e.Set.Spec.NetworkConfig) {
		return
	}
	byName(ctx, l, "services", []string{l.e.Name}, l.e.Services, func(ctx context.Context, name string) (*corev1.Service, error) {
		return l.Kube.CoreV1().Services(l.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// readNodesOfLeaders reads the nodes of leaders without workers, whose labels decide where the workers go.
func (l *loader) readNodesOfLeaders(ctx context.Context) {
	if l.e.Set.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey] == "" {
		return
	}
	var names []string
	for _, group := range l.e.Groups.Groups {
		if group.Leader != nil && group.Workers == nil && group.Leader.Spec.NodeName != "" {
			names = append(names, group.Leader.Spec.NodeName)
		}
	}
	byName(ctx, l, "nodes", names, l.e.Nodes, func(ctx context.Context, name string) (*corev1.Node, error) {
		return l.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	})
}

// gangScheduler is a scheduler of gangs with PodGroups of its own.
type gangScheduler struct {
	product  string
	resource schema.GroupVersionResource
	// waits are the phases before the pods of a group are scheduled.
	waits []string
	// groupOf returns the name of the PodGroup of a pod; empty for none.
	groupOf func(*corev1.Pod) string
}

var gangSchedulers = []gangScheduler{
	{
		product: "Volcano", resource: schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"},
		waits:   []string{"", "Pending", "Inqueue"},
		groupOf: func(pod *corev1.Pod) string { return pod.Annotations[leaderworkersetv1.PodGroupNameAnnotationKey] },
	},
	{
		product: "the coscheduling plugin", resource: schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1",
			Resource: "podgroups"},
		waits:   []string{"", "Pending", "PreScheduling", "Scheduling"},
		groupOf: func(pod *corev1.Pod) string { return pod.Labels[leaderworkersetv1.CoschedulingLabelKey] },
	},
}

// readGangs reads the PodGroups of schedulers of gangs that pods without a node belong to.
func (l *loader) readGangs(ctx context.Context) {
	l.e.Gangs = map[string]map[string]*unstructured.Unstructured{}
	for _, scheduler := range gangSchedulers {
		var names []string
		for _, pod := range l.e.Pods {
			if name := scheduler.groupOf(pod); name != "" && pod.Spec.NodeName == "" && pod.Spec.SchedulingGroup == nil {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			continue
		}
		found := map[string]*unstructured.Unstructured{}
		byName(ctx, l, "podgroups."+scheduler.resource.Group, names, found, func(ctx context.Context, name string) (*unstructured.Unstructured,
			error) {
			return l.Dynamic.Resource(scheduler.resource).Namespace(l.Namespace).Get(ctx, name, metav1.GetOptions{})
		})
		l.e.Gangs[scheduler.product] = found
	}
}

func listGroupsSets(ctx context.Context, l *loader, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	return l.JobSets.LeaderworkersetV1().LeaderWorkerSets(namespace).List(ctx, options)
}

// The rules of LeaderWorkerSets, by state. What all kinds share comes with the pods.
var (
	groupsRules = map[string][]rule{
		stateUnknown:            {storeRefused, apiServiceUnavailable, nodesLost, schedulingRefused, containersWaiting},
		stateNotFound:           {notFound, childrenBlocked},
		helper.PhaseTerminating: {groupsDeletion, childrenBlocked, nodesLost, terminatingPods},
		helper.PhaseFailed:      {controllerGone, setsRefused, podsOfSetsRefused, groupLimit},
	}
	groupsRunning = []rule{
		olderThanNamespace, controllerGone, updatePaused, setNameTaken, setsRefused, podsOfSetsRefused, childrenBlocked, groupsQueued,
		groupsUnreadable, nodesLost, terminatingPods,
		noFreeDomain, labelMissing, schedulingRefused, podGroups, gangs, containersWaiting, serviceOfGroups, revisionMixed,
		groupBackoff, groupRestarts, leaderNotReady, restartRequested, updateInProgress, groupsHealth,
	}
)

// diagnoseGroups explains the state of a LeaderWorkerSet. It finds something in every case, also that all is well.
func diagnoseGroups(e *Evidence) *Report {
	d := newDiagnosis(e)
	if e.Set == nil {
		phase := d.unreadPhase()
		return d.report(phase, groupsRules[phase.State])
	}
	s := snapshot.SummarizeGroups(e.Set)
	apply, known := groupsRules[s.State]
	if !known {
		apply = groupsRunning
	}
	r := d.report(s.Phase, apply)
	r.GroupCounts, r.Notes = &s.GroupCounts, queueIgnored(e)
	return r
}

// sets are the StatefulSets of a LeaderWorkerSet, beginning with the StatefulSet of the leaders.
func (d *diagnosis) sets() (sets []*appsv1.StatefulSet) {
	if d.Groups == nil {
		return nil
	}
	if d.Groups.Leader != nil {
		sets = append(sets, d.Groups.Leader)
	}
	for _, group := range d.Groups.Groups {
		if group.Workers != nil {
			sets = append(sets, group.Workers)
		}
	}
	return sets
}

// allReady returns whether as many groups are ready as the set wants.
func (d *diagnosis) allReady() bool { return d.readyGroups() >= d.Groups.Replicas() }

// readyGroups is the number of groups that are ready. The status may be older than the pods.
func (d *diagnosis) readyGroups() (n int) {
	for _, group := range d.Groups.Groups {
		if group.Index < d.Groups.Replicas() && group.Ready(d.Groups.Size(group)) {
			n++
		}
	}
	return n
}
