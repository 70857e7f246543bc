// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/refusals"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/restore"
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
	PodRefusal(job types.UID, lacks bool) *refusals.Refusal
	// Landed returns a node on which a pod of a Job is whose topology domain the scheduler chooses; empty if there is none.
	Landed(job types.UID) (node string, err error)
	// Waiting returns the unschedulable pods by the UID of their Job.
	Waiting(key cache.ObjectName) (map[types.UID]plan.Waiting, error)
	// Priorities returns the values of PriorityClasses by name, and under the empty name that of pods which name none; nil
	// without exclusive placement.
	Priorities() map[string]int32
	// ShutOut returns the UIDs of the Jobs with pods that find no node, some nodes being excluded by their affinity.
	ShutOut(key cache.ObjectName) (sets.Set[types.UID], error)
	// InPlace returns how far the pods of Jobs have come with restarting where they are, by the UID of the Job.
	InPlace(jobs []*batchv1.Job) map[types.UID]plan.InPlace
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

// Syncer carries out what is decided about sets: Observe, Apply, and Finish between and after the decisions of package plan.
// It decides nothing itself.
type Syncer struct {
	deps     SyncerConfig
	jobs     *children.Writer[*batchv1.Job]
	services *children.Writer[*corev1.Service]
	claims   *children.Writer[*corev1.PersistentVolumeClaim]
	// workloads and podGroups guard the groups of pods.
	workloads, podGroups *children.Guard

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
	// takenClaims are volume claims that exist although no cache shows them, because they carry no label of ours.
	takenClaims *expiring.LRUExpireCache
}

// NewSyncer returns a Syncer that remembers nothing.
func NewSyncer(deps SyncerConfig) *Syncer {
	if deps.Placer == nil {
		deps.Placer = noPlacer{}
	}
	kind := batchv1.SchemeGroupVersion.WithKind("Job").GroupKind()
	return &Syncer{
		deps: deps,
		jobs: children.NewWriter(deps.Host, kind, resourceJobs, "job", deps.Jobs),
		services: children.NewWriter(deps.Host, corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), resourceServices, "service",
			deps.Services),
		claims: children.NewWriter(deps.Host, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind(), resourceClaims,
			"persistent volume claim", deps.Claims),
		workloads: children.NewGuard("workload", deps.Clock), podGroups: children.NewGuard("podgroup", deps.Clock),
		deferred: children.NotesOf[plan.Deferred](deps.Host), createFrom: children.NotesOf[int64](deps.Host),
		refusedSince: children.NotesOf[time.Time](deps.Host), unschedulable: children.NotesOf[time.Time](deps.Host),
		podsRefused: children.NotesOf[time.Time](deps.Host), queueReported: children.NotesOf[types.UID](deps.Host),
		problems: children.NotesOf[string](deps.Host),
		backlogs: newBacklogs(deps.Clock), dropped: newDropped(deps.Clock),
		takenClaims: expiring.NewLRUExpireCacheWithClock(maxTakenClaims, deps.Clock),
	}
}

// newSyncer returns the Syncer of a controller. Clients are taken from its configuration.
func newSyncer(c *Controller, host children.Host) *Syncer {
	host.Shuffle = rand.Perm
	config := SyncerConfig{
		Host: &host, Caches: c.caches, Recorder: c.Recorder, Gates: c.Gates, Endpoints: c.Endpoints, FirstCause: c.firstCause,
		Restore: c.restoreState, Nodes: newNodeCounter(c.Kube, c.Clock).count, AvoidFailedNodes: c.AvoidFailedNodes,
		MoveAfter: cmp.Or(c.PlacementMoveAfter, placement.DefaultMoveAfter), Kueue: kueue.NewPresence(c.Kube, c.Clock).Of,
		JobSets: func(namespace string) children.OwnerClient[*jobsetv1alpha2.JobSet] {
			return c.JobSets.JobsetV1alpha2().JobSets(namespace)
		},
		Jobs:     func(namespace string) children.Client[*batchv1.Job] { return c.Kube.BatchV1().Jobs(namespace) },
		Services: func(namespace string) children.Client[*corev1.Service] { return c.Kube.CoreV1().Services(namespace) },
		Claims: func(namespace string) children.Client[*corev1.PersistentVolumeClaim] {
			return c.Kube.CoreV1().PersistentVolumeClaims(namespace)
		},
	}
	if c.placer != nil {
		config.Placer = c.placer
	}
	if c.groups != nil {
		config.Groups = groups{c.groups, c.Dynamic, c.ownGroups()}
	}
	return NewSyncer(config)
}

// Finish does what remains of a sync: it reports what became of children, stores the status, then reports its events, and
// deletes a set whose time is over. The status is stored even if a child could not be written, because it says what was
// observed and not what was done.
func (s *Syncer) Finish(ctx context.Context, js *jobsetv1alpha2.JobSet, out plan.Outcome) error {
	key := cache.MetaObjectToName(js)
	for _, warning := range out.Warnings {
		s.warn(js, warning)
	}
	s.createFrom.Note(key, out.CreateFrom)
	s.refusedSince.Note(key, out.RefusedSince)
	if out.Status == nil {
		s.deferred.Note(key, out.Deferred)
	}
	stored, err := s.writeStatus(ctx, js, out)
	if err != nil || !out.DeleteJobSet || ctx.Err() != nil {
		return err
	}
	if err := children.DeleteOwner(ctx, s.deps.JobSets(js.Namespace), stored); err != nil {
		return fmt.Errorf("deleting jobset %s after its time to live: %w", key, err)
	}
	klog.FromContext(ctx).V(3).Info("Deleted the JobSet after its time to live")
	return nil
}

// writeStatus stores the next status, if there is one, and then reports its events. It returns the set as it is stored now.
func (s *Syncer) writeStatus(ctx context.Context, js *jobsetv1alpha2.JobSet, out plan.Outcome) (*jobsetv1alpha2.JobSet, error) {
	stored := js
	var notKept error
	if out.Status != nil {
		next := *js // shares the rest, which is not changed
		next.Status = *out.Status
		key := cache.MetaObjectToName(js)
		updated, found, err := children.StoreStatus(ctx, s.deps.Host, s.deps.JobSets(js.Namespace), resourceJobSets, "jobset", &next)
		if err != nil || !found {
			return js, err
		}
		stored = updated
		s.deferred.Forget(key)
		notKept = s.dropped.notice(out.Status, &stored.Status)
		if js.Status.TerminalState == "" {
			countFinish(stored)
		}
	}
	for _, event := range out.Events {
		s.report(js, event)
		klog.FromContext(ctx).V(4).Info("Reported an event", "reason", event.Reason) // notes may hold output of containers
	}
	return stored, notKept
}

// forget drops what is remembered about a set that is gone.
func (s *Syncer) forget(key cache.ObjectName) {
	s.deps.Host.Forget(key)
	s.backlogs.forget(key)
	s.deps.Placer.Forget(key)
}
