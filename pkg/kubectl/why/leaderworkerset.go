// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// The reading of LeaderWorkerSets.

// leaderWorkerSetKind is the kind LeaderWorkerSet.
func leaderWorkerSetKind() *kind {
	return &kind{
		Kind: cli.LeaderWorkerSet, noun: "set", prefix: cli.LeaderWorkerSet.Names[2] + "/", label: leaderworkersetv1.SetNameLabelKey,
		controls: "LeaderWorkerSets", children: "StatefulSets", readChildren: (*loader).readStatefulSets,
		essential: []string{"pods", "statefulsets", "events"}, queued: "LeaderWorkerSets", unqueue: unqueueLeaderWorkerSet,
		read: (*loader).readLeaderWorkerSet, assemble: (*loader).assembleLeaderWorkerSet, more: (*loader).readMoreOfLeaderWorkerSet,
		list: listLeaderWorkerSets,
	}
}

// LeaderWorkerSet is the Diagnoser of LeaderWorkerSets.
func LeaderWorkerSet(ctx context.Context, c *cli.Clients, name string) (*Report, error) {
	return explain(ctx, c, leaderWorkerSetKind(), name, diagnoseLeaderWorkerSet)
}

// endless is what subjects have in common that do not end, and that no other controller manages.
type endless struct{}

func (endless) manager() string { return "" }

func (endless) ended() bool { return false }

// leaderWorkerSetSubject is a LeaderWorkerSet as a subject.
type leaderWorkerSetSubject struct {
	endless
	*leaderworkersetv1.LeaderWorkerSet
}

func (s leaderWorkerSetSubject) observed() bool {
	return s.Status.ObservedGeneration > 0 || len(s.Status.Conditions) > 0
}

func (s leaderWorkerSetSubject) failedOn() string {
	for i := range s.Status.Groups {
		if cause := s.Status.Groups[i].FirstCause; cause != nil && cause.Node != "" {
			return cause.Node
		}
	}
	return ""
}

func (l *loader) readLeaderWorkerSet(ctx context.Context) error {
	set, err := l.JobSets.LeaderworkersetV1().LeaderWorkerSets(l.Namespace).Get(ctx, l.e.Name, metav1.GetOptions{})
	if err == nil {
		l.e.Set = set
	}
	return err
}

func (l *loader) readStatefulSets(ctx context.Context) {
	if list, err := l.Kube.AppsV1().StatefulSets(l.Namespace).List(ctx, l.named()); l.got("statefulsets", err) {
		l.sets = list.Items
	}
}

// assembleLeaderWorkerSet keeps the StatefulSets and pods of the set.
func (l *loader) assembleLeaderWorkerSet() {
	l.e.Replicas = snapshot.AssembleLeaderWorkerSet(l.e.Set, l.sets, l.pods, l.e.Now)
	l.e.Pods = l.e.Replicas.Pods()
}

// readMoreOfLeaderWorkerSet are the readings for the rules that only LeaderWorkerSets have.
func (l *loader) readMoreOfLeaderWorkerSet() []func(context.Context) {
	reads := []func(context.Context){l.readServiceOfLeaderWorkerSet, l.readNodesOfLeaders, l.readGangs, l.readKueueOfLeaderWorkerSet}
	if l.e.Replicas.Leader == nil {
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

// readServiceOfLeaderWorkerSet reads the Service that all replicas share, if they do.
func (l *loader) readServiceOfLeaderWorkerSet(ctx context.Context) {
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
	for _, replica := range l.e.Replicas.Replicas {
		if replica.Leader != nil && replica.Workers == nil && replica.Leader.Spec.NodeName != "" {
			names = append(names, replica.Leader.Spec.NodeName)
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
	// waits are the phases before the pods of a replica are scheduled.
	waits []string
	// groupOf returns the name of the PodGroup of a pod; empty for none.
	groupOf func(*corev1.Pod) string
}

var gangSchedulers = []gangScheduler{
	{
		product: "Volcano", resource: gangplan.Volcano.Resource(),
		waits:   []string{"", "Pending", "Inqueue"},
		groupOf: func(pod *corev1.Pod) string { return pod.Annotations[leaderworkersetv1.PodGroupNameAnnotationKey] },
	},
	{
		product: "the coscheduling plugin", resource: gangplan.Coscheduling.Resource(),
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

func listLeaderWorkerSets(ctx context.Context, l *loader, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	return l.JobSets.LeaderworkersetV1().LeaderWorkerSets(namespace).List(ctx, options)
}

// The rules of LeaderWorkerSets, by state. What all kinds share comes with the pods.
var (
	leaderWorkerSetRules = map[string][]rule{
		stateUnknown:            {storeRefused, apiServiceUnavailable, nodesLost, schedulingRefused, containersWaiting},
		stateNotFound:           {notFound, childrenBlocked},
		helper.PhaseTerminating: {leaderWorkerSetDeletion, childrenBlocked, nodesLost, terminatingPods},
		helper.PhaseFailed:      {controllerGone, setsRefused, podsOfSetsRefused, replicaLimit},
	}
	leaderWorkerSetRunning = []rule{
		olderThanNamespace, controllerGone, updatePaused, setNameTaken, setsRefused, podsOfSetsRefused, childrenBlocked, leaderWorkerSetQueued,
		leaderWorkerSetUnreadable, nodesLost, terminatingPods,
		noFreeDomain, labelMissing, schedulingRefused, podGroups, gangs, containersWaiting, serviceOfLeaderWorkerSet, revisionMixed,
		replicaBackoff, replicaRestarts, leaderNotReady, restartRequested, updateInProgress, leaderWorkerSetHealth,
	}
)

// diagnoseLeaderWorkerSet explains the state of a LeaderWorkerSet. It finds something in every case, also that all is well.
func diagnoseLeaderWorkerSet(e *Evidence) *Report {
	d := newDiagnosis(e)
	if e.Set == nil {
		phase := d.unreadPhase()
		return d.report(phase, leaderWorkerSetRules[phase.State])
	}
	s := snapshot.SummarizeLeaderWorkerSet(e.Set)
	apply, known := leaderWorkerSetRules[s.State]
	if !known {
		apply = leaderWorkerSetRunning
	}
	r := d.report(s.Phase, apply)
	r.ReplicaCounts, r.Notes = &s.ReplicaCounts, queueIgnored(e)
	return r
}

// sets are the StatefulSets of a LeaderWorkerSet, beginning with the StatefulSet of the leaders.
func (d *diagnosis) sets() (sets []*appsv1.StatefulSet) {
	if d.Replicas == nil {
		return nil
	}
	if d.Replicas.Leader != nil {
		sets = append(sets, d.Replicas.Leader)
	}
	for _, replica := range d.Replicas.Replicas {
		if replica.Workers != nil {
			sets = append(sets, replica.Workers)
		}
	}
	return sets
}

// allReady returns whether as many replicas are ready as the set wants.
func (d *diagnosis) allReady() bool { return d.readyReplicas() >= d.Replicas.Wanted() }

// readyReplicas is the number of replicas that are ready. The status may be older than the pods.
func (d *diagnosis) readyReplicas() (n int) {
	for _, replica := range d.Replicas.Replicas {
		if replica.Index < d.Replicas.Wanted() && replica.Ready(d.Replicas.Size(replica)) {
			n++
		}
	}
	return n
}
