// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"cmp"
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/restore"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// maxTakenClaims is the number of volume claims of others that are remembered. More are asked for again.
const maxTakenClaims = 10_000

// Caches are what a decision is made on.
type Caches interface {
	// JobSet returns a set; nil if there is none.
	JobSet(key cache.ObjectName) (*jobsetv1alpha2.JobSet, error)
	// Jobs returns the Jobs that the set controls.
	Jobs(js *jobsetv1alpha2.JobSet) ([]*batchv1.Job, error)
	// HasService and HasClaim return whether there is an object of the name, whoever owns it.
	HasService(name cache.ObjectName) (bool, error)
	HasClaim(name cache.ObjectName) (bool, error)
	// Unschedulable returns the number of pods of the set for which the scheduler finds no node, and its reason for one of them.
	Unschedulable(key cache.ObjectName) (pods int, reason string, err error)
	// PodRefusal returns why the API refuses pods of a Job; nil if it does not, as far as is known. Lacks means that the Job has too few.
	PodRefusal(job types.UID, lacks bool) *hostplan.Refusal
	// Landed returns a node on which a pod of a Job is whose topology domain the scheduler chooses; empty if there is none.
	Landed(job types.UID) (node string, err error)
	// Waiting returns the unschedulable pods by the UID of their Job.
	Waiting(key cache.ObjectName) (map[types.UID]domains.Waiting, error)
	// Priorities returns the values of PriorityClasses by name, and under the empty name that of pods which name none; nil
	// without exclusive placement.
	Priorities() map[string]int32
	// ShutOut returns the UIDs of the Jobs with pods that find no node, some nodes being excluded by their affinity.
	ShutOut(key cache.ObjectName) (sets.Set[types.UID], error)
	// InPlace returns how far the pods of Jobs have come with restarting where they are, by the UID of the Job.
	InPlace(jobs []*batchv1.Job) map[types.UID]planinplace.State
	// PodFailure returns what failed last in a pod; nil if nothing did, or if there is no such pod.
	PodFailure(pod cache.ObjectName) (*helper.PodFailure, error)
}

// Endpoints is what writes the addresses of headless Services in place of the cluster.
type Endpoints interface {
	// Serves returns whether the Service of a set can be created so that the cluster does not write its addresses.
	Serves(js *jobsetv1alpha2.JobSet) bool
	// Refusal returns the reason for which the cluster writes the addresses of a set that asks otherwise, and a message
	// that says what to do; both are empty if they are written as the set asks. It may not be known yet.
	Refusal(js *jobsetv1alpha2.JobSet) (reason, message string, known bool)
	// OnChange has changed called when the answer of Refusal has changed for a set.
	OnChange(changed func(set cache.ObjectName))
}

// SyncerConfig is what a Syncer needs.
type SyncerConfig struct {
	*children.Host
	// Caches are read.
	Caches Caches
	// JobSets, Jobs, Services and Claims are clients for a namespace.
	JobSets  func(namespace string) children.OwnerClient[*jobsetv1alpha2.JobSet]
	Jobs     func(namespace string) children.Client[*batchv1.Job]
	Services func(namespace string) children.Client[*corev1.Service]
	Claims   func(namespace string) children.Client[*corev1.PersistentVolumeClaim]
	// FirstCause returns why a Job of a set failed; nil if that is not known yet, and may be known later.
	FirstCause func(ctx context.Context, namespace string, job plan.FailedJob) *jobsetv1alpha2.FailureCause
	// Restore returns what is known about it if the store was restored from a backup.
	Restore func(ctx context.Context, js *jobsetv1alpha2.JobSet) (restore.State, error)
	// Placer finds topology domains; nil without exclusive placement.
	Placer Placer
	// Groups are the groups of pods; nil without the feature gate.
	Groups Groups
	// Nodes returns about how many nodes the cluster has; 0 if that cannot be read. It may be nil.
	Nodes func(ctx context.Context) int
	// AvoidFailedNodes is for how long pods keep off nodes on which an attempt failed, unless the set says otherwise; 0 for not at all.
	AvoidFailedNodes time.Duration
	// MoveAfter is how long pods wait for nodes before their Job moves to another topology domain.
	MoveAfter time.Duration
	// Endpoints writes the addresses of headless Services in place of the cluster; nil for never.
	Endpoints Endpoints
	// Kueue returns whether the cluster has Kueue. It may be nil.
	Kueue func(ctx context.Context) kueue.Availability
	// Recorder sends events.
	Recorder events.EventRecorder
	// Gates are the feature gates that change decisions.
	Gates gates.Gates
}

// Loop runs sets, Kind is what it needs to know of them, and Outcome is what is left to do for one of them.
type (
	Loop    = loop.Loop[*jobsetv1alpha2.JobSet, plan.Observed, plan.Plan, plan.Results]
	Kind    = loop.Kind[*jobsetv1alpha2.JobSet, plan.Observed, plan.Plan, plan.Results]
	Outcome = loop.Outcome[*jobsetv1alpha2.JobSet]
)

// Syncer carries out what is decided about sets: it observes before the decisions of package plan, and applies them. It
// decides nothing itself.
type Syncer struct {
	*Loop
	deps     SyncerConfig
	jobs     *children.Writer[*batchv1.Job]
	services *children.Writer[*corev1.Service]
	claims   *children.Writer[*corev1.PersistentVolumeClaim]
	// workloads and podGroups guard the groups of pods.
	workloads, podGroups *children.Guard
	// denials know which requests about groups were denied.
	denials *children.Denials

	// deferred is what was seen of sets whose status waits.
	deferred *children.Notes[plan.Deferred]
	// createFrom are the places of the Jobs that are created first.
	createFrom *children.Notes[int64]
	// refusedSince is since when each pass was refused the creation of something.
	refusedSince *children.Notes[time.Time]
	// unschedulable is since when sets have pods for which the scheduler finds no node.
	unschedulable *children.Notes[time.Time]
	// podsRefused is since when the API refuses pods of sets.
	podsRefused *children.Notes[time.Time]
	// queueReported are the UIDs of sets for which an event has said that no queueing system reads their queue.
	queueReported *children.Notes[types.UID]
	// problems are what was last logged about malformed children.
	problems *children.Notes[string]
	// backlogs are the Jobs that wait for the Job controller.
	backlogs *backlogs
	dropped  *dropped
	// takenClaims are volume claims that exist although no cache shows them, because they carry no label of the set.
	takenClaims *expiring.LRUExpireCache
}

// NewSyncer returns a Syncer that remembers nothing.
func NewSyncer(deps SyncerConfig) *Syncer {
	if deps.Placer == nil {
		deps.Placer = noPlacer{}
	}
	kind := batchv1.SchemeGroupVersion.WithKind("Job").GroupKind()
	s := &Syncer{
		deps: deps,
		jobs: children.NewWriter(deps.Host, kind, resourceJobs, "job", deps.Jobs),
		services: children.NewWriter(deps.Host, corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), resourceServices, "service",
			deps.Services),
		claims: children.NewWriter(deps.Host, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind(), resourceClaims,
			"persistent volume claim", deps.Claims),
		workloads: children.NewGuard("workload", deps.Clock), podGroups: children.NewGuard("podgroup", deps.Clock),
		denials:  children.DenialsOf(deps.Host),
		deferred: children.NotesOf[plan.Deferred](deps.Host), createFrom: children.NotesOf[int64](deps.Host),
		refusedSince: children.NotesOf[time.Time](deps.Host), unschedulable: children.NotesOf[time.Time](deps.Host),
		podsRefused: children.NotesOf[time.Time](deps.Host), queueReported: children.NotesOf[types.UID](deps.Host),
		problems: children.NotesOf[string](deps.Host),
		backlogs: newBacklogs(deps.Clock), dropped: newDropped(deps.Clock),
		takenClaims: expiring.NewLRUExpireCacheWithClock(maxTakenClaims, deps.Clock),
	}
	s.Loop = &Loop{
		Host: deps.Host, Kind: loopKind{Syncer: s}, GVK: jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"), Resource: resourceJobSets,
		Client: deps.JobSets, Recorder: deps.Recorder,
	}
	return s
}

// loopKind implements Kind.
type loopKind struct {
	loop.Defaults[*jobsetv1alpha2.JobSet, plan.Observed, plan.Plan]
	*Syncer
}

func (k loopKind) Owner(key cache.ObjectName) (*jobsetv1alpha2.JobSet, error) {
	return k.deps.Caches.JobSet(key)
}

func (loopKind) Moved(observed, now *jobsetv1alpha2.JobSet) bool { return moved(observed, now) }

func (k loopKind) Forgotten(key cache.ObjectName) { k.forgotten(key) }

func (loopKind) Decide(obs plan.Observed) plan.Plan { return plan.Decide(obs) }

func (loopKind) Questions(p plan.Plan) []string { return p.Questions() }

func (k loopKind) Conclude(obs *plan.Observed, p plan.Plan, results plan.Results) Outcome {
	return k.Syncer.Conclude(obs, plan.Finish(*obs, p, results))
}

// newSyncer returns the Syncer of a controller. Clients are taken from its configuration.
func newSyncer(c *Controller, shared children.Host) *Syncer {
	config := SyncerConfig{
		Host: &shared, Caches: c.caches, Recorder: c.Recorder, Gates: c.Gates, Endpoints: c.Endpoints, FirstCause: c.firstCause,
		Restore: c.restoreState, Nodes: newNodeCounter(c.Kube, c.Clock).Of, AvoidFailedNodes: c.AvoidFailedNodes,
		MoveAfter: cmp.Or(c.PlacementMoveAfter, placement.DefaultMoveAfter), Kueue: kueue.NewPresence(c.Kube, c.Clock).Of,
		JobSets: children.OwnersIn(c.JobSets.JobsetV1alpha2().JobSets), Jobs: children.In(c.Kube.BatchV1().Jobs),
		Services: children.In(c.Kube.CoreV1().Services), Claims: children.In(c.Kube.CoreV1().PersistentVolumeClaims),
	}
	if c.placer != nil {
		config.Placer = c.placer
	}
	if c.groups != nil {
		config.Groups = groups{c.groups, c.Dynamic, c.ownGroups()}
	}
	return NewSyncer(config)
}

// Conclude notes what is remembered of a sync, and returns what is left to do.
func (s *Syncer) Conclude(obs *plan.Observed, out plan.Outcome) Outcome {
	js, key := obs.JobSet, cache.MetaObjectToName(obs.JobSet)
	s.createFrom.Note(key, out.CreateFrom)
	s.refusedSince.Note(key, out.RefusedSince)
	left := Outcome{
		Owner: js, Due: queue.Due{Deadline: out.RequeueAfter, Acts: out.ActsAfter, Continue: out.Continue},
		Writes: loop.Series(out.Warnings), Events: loop.Transitions(out.Events),
	}
	if out.DeleteJobSet {
		left.Then = s.Delete
	}
	if out.Status == nil {
		s.deferred.Note(key, out.Deferred)
		return left
	}
	next := *js // shares the rest, which is not changed
	next.Status = *out.Status
	left.Next = &next
	left.Stored = func(stored *jobsetv1alpha2.JobSet) error {
		s.deferred.Forget(key)
		if js.Status.TerminalState == "" {
			countFinish(stored)
		}
		return s.dropped.notice(out.Status, &stored.Status)
	}
	return left
}

// forgotten drops what else is remembered about a set that is gone.
func (s *Syncer) forgotten(key cache.ObjectName) {
	s.backlogs.forget(key)
	s.deps.Placer.Forget(key)
}
