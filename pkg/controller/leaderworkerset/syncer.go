// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// Child is a child of which existence and controller matter.
type Child = plan.Child

// Caches are what a decision is made on.
type Caches interface {
	// Set returns a set; nil if there is none.
	Set(key cache.ObjectName) (*leaderworkersetv1.LeaderWorkerSet, error)
	// Leader returns the StatefulSet with the name of the set, and whether there is one that the set does not control.
	Leader(set *leaderworkersetv1.LeaderWorkerSet) (sts *appsv1.StatefulSet, taken bool, err error)
	// LeaderKey returns the key of status.currentRevision of the StatefulSet of leaders, if it is known.
	LeaderKey(leader *appsv1.StatefulSet) (key string, known bool)
	// Workers returns the StatefulSets with the label of the set that pods control, without their pods.
	Workers(key cache.ObjectName) ([]plan.Workers, error)
	// Pods returns the pods of a controller.
	Pods(controller types.UID) ([]plan.Pod, error)
	// PodRefusal returns why the API refuses pods of a StatefulSet; nil if it does not, as far as is known. Lacks means that it has too few.
	PodRefusal(statefulSet types.UID, lacks bool) *hostplan.Refusal
	// FirstFailure returns what failed first in a leader pod, or in the pods of a StatefulSet of workers, also in those that are gone; nil if
	// nothing did.
	FirstFailure(uid types.UID) *helper.PodFailure
	// Orphans returns the objects with the label of the set that have no controller and are made like its children.
	Orphans(key cache.ObjectName) ([]plan.Orphan, error)
	// Services returns those with the label of the set.
	Services(key cache.ObjectName) ([]Child, error)
	// Revisions returns the ControllerRevisions with the label of the set.
	Revisions(key cache.ObjectName) ([]*appsv1.ControllerRevision, error)
	// PodGroups returns those with the label of the set.
	PodGroups(key cache.ObjectName) ([]Child, error)
	// Domain returns the value of a label of a node, if it is known.
	Domain(node, label string) (domain string, known bool)
}

// Clients are the clients of the API servers, for a namespace. PodGroups is nil without a scheduler of gangs.
type Clients struct {
	Sets         func(namespace string) children.LiveOwnerClient[*leaderworkersetv1.LeaderWorkerSet]
	StatefulSets func(namespace string) children.Client[*appsv1.StatefulSet]
	Pods         func(namespace string) children.Client[*corev1.Pod]
	Services     func(namespace string) children.Client[*corev1.Service]
	Revisions    func(namespace string) children.Client[*appsv1.ControllerRevision]
	PodGroups    func(namespace string) children.Client[*unstructured.Unstructured]
	// Leaders reads the leader pods of a set from the API.
	Leaders func(ctx context.Context, key cache.ObjectName) ([]Child, error)
}

// SyncerConfig is what a Syncer needs.
type SyncerConfig struct {
	*children.Host
	Clients
	// Caches are read.
	Caches Caches
	// Gang is the scheduler of gangs; empty for none.
	Gang plan.GangProvider
	// ServedSince returns since when the server of the sets is served without interruption, as far as this process has
	// seen; zero if it is not served.
	ServedSince func() time.Time
	// Kueue returns whether the cluster has Kueue. It may be nil.
	Kueue func(ctx context.Context) kueue.Availability
	// Recorder sends events.
	Recorder events.EventRecorder
}

// Loop runs sets, Kind is what it needs to know of them, and Outcome is what is left to do for one of them.
type (
	Loop    = loop.Loop[*leaderworkersetv1.LeaderWorkerSet, plan.Observed, plan.Plan, plan.Results]
	Kind    = loop.Kind[*leaderworkersetv1.LeaderWorkerSet, plan.Observed, plan.Plan, plan.Results]
	Outcome = loop.Outcome[*leaderworkersetv1.LeaderWorkerSet]
)

// Syncer carries out what is decided about sets: it observes before the decisions of package plan, and applies them. It
// decides nothing itself.
type Syncer struct {
	*Loop
	deps         SyncerConfig
	statefulSets *children.Writer[*appsv1.StatefulSet]
	pods         *children.Writer[*corev1.Pod]
	services     *children.Writer[*corev1.Service]
	revisions    *children.Writer[*appsv1.ControllerRevision]
	podGroups    *children.Writer[*unstructured.Unstructured]

	// applied are the leader StatefulSets that this process last applied.
	applied *children.Notes[application]
	// readings are what the last decisions found out.
	readings *children.Notes[*plan.Reading]
	// gone are the leader pods that are gone and not evaluated yet. evaluated are the leader pods whose deletion was
	// evaluated and that still exist.
	gone      *goneLeaders
	evaluated *children.Notes[map[types.UID]bool]
	// countsSince is since when counts wait for other changes of a status.
	countsSince *children.Notes[time.Time]
	// taken is since when names of children are taken.
	taken *children.Notes[plan.Taken]
	// troubled is since when each pass has troubles with children.
	troubled *children.Notes[time.Time]
	// podsRefused is since when the API refuses pods of sets.
	podsRefused *children.Notes[time.Time]
	// unschedulable is since when sets have pods for which the scheduler finds no node.
	unschedulable *children.Notes[time.Time]
	// queueReported are the UIDs of sets for which an event has said that no queueing system reads their queue.
	queueReported *children.Notes[types.UID]
}

// NewSyncer returns a Syncer that remembers nothing.
func NewSyncer(deps SyncerConfig) *Syncer {
	apps := func(kind string) schema.GroupKind { return appsv1.SchemeGroupVersion.WithKind(kind).GroupKind() }
	core := func(kind string) schema.GroupKind { return corev1.SchemeGroupVersion.WithKind(kind).GroupKind() }
	s := &Syncer{
		deps:         deps,
		statefulSets: children.NewWriter(deps.Host, apps("StatefulSet"), resourceStatefulSets, "statefulset", deps.StatefulSets),
		pods:         children.NewWriter(deps.Host, core("Pod"), resourcePods, "pod", deps.Pods),
		services:     children.NewWriter(deps.Host, core("Service"), resourceServices, "service", deps.Services),
		revisions:    children.NewWriter(deps.Host, apps("ControllerRevision"), resourceRevisions, "controllerrevision", deps.Revisions),
		applied:      children.NotesOf[application](deps.Host), countsSince: children.NotesOf[time.Time](deps.Host),
		podsRefused: children.NotesOf[time.Time](deps.Host), unschedulable: children.NotesOf[time.Time](deps.Host),
		troubled: children.NotesOf[time.Time](deps.Host),
		taken:    children.NotesOf[plan.Taken](deps.Host), queueReported: children.NotesOf[types.UID](deps.Host),
		readings: children.NotesOf[*plan.Reading](deps.Host), gone: newGoneLeaders(), evaluated: children.NotesOf[map[types.UID]bool](deps.Host),
	}
	kind := schema.GroupKind{Group: deps.Gang.Resource().Group, Kind: "PodGroup"}
	s.podGroups = children.NewWriter(deps.Host, kind, resourcePodGroups, "podgroup", deps.PodGroups)
	s.Loop = &Loop{
		Host: deps.Host, Kind: loopKind{Syncer: s}, GVK: leaderworkersetv1.SchemeGroupVersion.WithKind(kindSet), Resource: resourceSets,
		Client: children.OwnersIn(deps.Sets), Recorder: deps.Recorder,
	}
	return s
}

// loopKind implements Kind.
type loopKind struct {
	loop.Defaults[*leaderworkersetv1.LeaderWorkerSet, plan.Observed, plan.Plan]
	*Syncer
}

func (k loopKind) Owner(key cache.ObjectName) (*leaderworkersetv1.LeaderWorkerSet, error) {
	return k.deps.Caches.Set(key)
}

func (k loopKind) Forgotten(key cache.ObjectName) { k.gone.forget(key, nil) }

func (loopKind) Decide(obs plan.Observed) plan.Plan { return plan.Decide(obs) }

func (loopKind) Questions(p plan.Plan) []string { return p.Questions() }

func (k loopKind) Conclude(obs *plan.Observed, p plan.Plan, results plan.Results) Outcome {
	return k.Syncer.Conclude(obs, plan.Finish(*obs, p, results))
}

// Conclude notes what is remembered of a sync, and returns what is left to do.
func (s *Syncer) Conclude(obs *plan.Observed, out plan.Outcome) Outcome {
	key := cache.MetaObjectToName(obs.Set)
	if s.taken.Forget(key); len(out.TakenSince.Services)+len(out.TakenSince.Workers) > 0 {
		s.taken.Note(key, out.TakenSince)
	}
	s.troubled.Note(key, out.TroubledSince)
	s.noteRecorded(key, out.Recorded)
	pods := func(name string) *corev1.ObjectReference { return podReference(obs, name) }
	left := Outcome{
		Owner: obs.Set, Due: queue.Due{Deadline: out.RequeueAfter, Acts: out.ActsAfter, Continue: out.Continue},
		Writes: loop.Relate(loop.Steps(out.Others), pods), Events: loop.Relate(loop.Transitions(out.Events), pods),
		NotStored: func(ctx context.Context, err error) { s.reportStatus(ctx, obs, err) },
		Stored: func(*leaderworkersetv1.LeaderWorkerSet) error {
			s.noteEvaluated(key, out.Evaluated)
			// Counts whose write has failed do not wait again: a sync that only waits has not failed, and would end the
			// backoff of those that do.
			children.Since(s.countsSince, key, out.CountsWait, s.deps.Clock.Now())
			return nil
		},
	}
	if out.Status != nil {
		next := *obs.Set // shares the rest, which is not changed
		next.Status = *out.Status
		left.Next = &next
	}
	return left
}

// countsWaited returns for how long counts have waited; 0 if none wait.
func (s *Syncer) countsWaited(key cache.ObjectName) time.Duration {
	since := s.countsSince.Noted(key)
	if since.IsZero() {
		return 0
	}
	return s.deps.Clock.Now().Sub(since)
}

// application is what a leader StatefulSet was applied with, and the generation that it had then.
type application struct {
	hash       string
	generation int64
}
