// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// Caches are what a decision is made on.
type Caches interface {
	// Set returns a DisaggregatedSet; nil if there is none.
	Set(key cache.ObjectName) (*disaggregatedsetv1.DisaggregatedSet, error)
	// LeaderWorkerSets, Services and Scalers return those that a set controls.
	LeaderWorkerSets(ds *disaggregatedsetv1.DisaggregatedSet) ([]plan.Child, error)
	Services(ds *disaggregatedsetv1.DisaggregatedSet) ([]plan.Service, error)
	Scalers(ds *disaggregatedsetv1.DisaggregatedSet) ([]*disaggregatedsetv1.DisaggregatedSetRoleScaler, error)
	// Scaler returns the scaler of the name, whoever controls it; nil if there is none.
	Scaler(key cache.ObjectName) (*disaggregatedsetv1.DisaggregatedSetRoleScaler, error)
	// Orphans returns the objects with the label of the set that have no controller and are made like its children.
	Orphans(key cache.ObjectName) ([]plan.Orphan, error)
	// Unreadable returns the LeaderWorkerSets and scalers that the server cannot read, and that the set controls or may control.
	Unreadable(ds *disaggregatedsetv1.DisaggregatedSet) ([]plan.Unreadable, error)
	// Former returns whether a set that had the name before controls LeaderWorkerSets that are not being deleted.
	Former(ds *disaggregatedsetv1.DisaggregatedSet) (bool, error)
}

// ScalerClient is a client of DisaggregatedSetRoleScalers in one namespace. The generated ones have it.
type ScalerClient interface {
	children.Client[*disaggregatedsetv1.DisaggregatedSetRoleScaler]
	children.OwnerClient[*disaggregatedsetv1.DisaggregatedSetRoleScaler]
}

// SyncerConfig is what a Syncer needs.
type SyncerConfig struct {
	*children.Host
	// Caches are read.
	Caches Caches
	// Sets, LeaderWorkerSets, Services and Scalers are clients for a namespace.
	Sets             func(namespace string) children.LiveOwnerClient[*disaggregatedsetv1.DisaggregatedSet]
	LeaderWorkerSets func(namespace string) children.Client[*leaderworkersetv1.LeaderWorkerSet]
	Services         func(namespace string) children.Client[*corev1.Service]
	Scalers          func(namespace string) ScalerClient
	// Recorder sends events about DisaggregatedSets.
	Recorder events.EventRecorder
}

// Loop runs DisaggregatedSets, Kind is what it needs to know of them, and Outcome is what is left to do for one of them.
type (
	Loop    = loop.Loop[*disaggregatedsetv1.DisaggregatedSet, plan.Observed, plan.Plan, plan.Results]
	Kind    = loop.Kind[*disaggregatedsetv1.DisaggregatedSet, plan.Observed, plan.Plan, plan.Results]
	Outcome = loop.Outcome[*disaggregatedsetv1.DisaggregatedSet]
)

// Syncer carries out what is decided about DisaggregatedSets: it observes before the decisions of package plan, and
// applies them. It decides nothing itself.
type Syncer struct {
	*Loop
	deps     SyncerConfig
	sets     *children.Writer[*leaderworkersetv1.LeaderWorkerSet]
	services *children.Writer[*corev1.Service]
	scalers  *children.Writer[*disaggregatedsetv1.DisaggregatedSetRoleScaler]
	// conflicts are the names of scalers that others have and that were reported.
	conflicts *children.Notes[map[string]bool]
	// troubled is since when each pass has troubles with children.
	troubled *children.Notes[time.Time]
	// former is since when caches show LeaderWorkerSets of sets that had the name before.
	former *children.Notes[formerSince]
}

// NewSyncer returns a Syncer that remembers nothing.
func NewSyncer(deps SyncerConfig) *Syncer {
	s := &Syncer{
		deps: deps,
		sets: children.NewWriter(deps.Host, leaderworkersetv1.Kind("LeaderWorkerSet"), resourceChildren, "leaderworkerset",
			deps.LeaderWorkerSets),
		services: children.NewWriter(deps.Host, corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), resourceServices, "service",
			deps.Services),
		scalers: children.NewWriter(deps.Host, disaggregatedsetv1.Kind("DisaggregatedSetRoleScaler"), resourceScalers,
			"disaggregatedsetrolescaler", children.In(deps.Scalers)),
		conflicts: children.NotesOf[map[string]bool](deps.Host), former: children.NotesOf[formerSince](deps.Host),
		troubled: children.NotesOf[time.Time](deps.Host),
	}
	s.Loop = &Loop{
		Host: deps.Host, Kind: loopKind{Syncer: s}, GVK: disaggregatedsetv1.SchemeGroupVersion.WithKind("DisaggregatedSet"),
		Resource: resourceSets, Client: children.OwnersIn(deps.Sets), Recorder: deps.Recorder,
	}
	return s
}

// loopKind implements Kind.
type loopKind struct {
	loop.Defaults[*disaggregatedsetv1.DisaggregatedSet, plan.Observed, plan.Plan]
	*Syncer
}

func (k loopKind) Owner(key cache.ObjectName) (*disaggregatedsetv1.DisaggregatedSet, error) {
	return k.deps.Caches.Set(key)
}

func (loopKind) Decide(obs plan.Observed) plan.Plan { return plan.Decide(obs) }

func (k loopKind) Conclude(obs *plan.Observed, p plan.Plan, results plan.Results) Outcome {
	return k.Syncer.Conclude(obs, p, plan.Finish(*obs, p, results))
}

// Conclude returns what is left to do of a sync.
func (s *Syncer) Conclude(obs *plan.Observed, p plan.Plan, out plan.Outcome) Outcome {
	ds := obs.Set
	s.troubled.Note(cache.MetaObjectToName(ds), out.TroubledSince)
	events := loop.Relate(loop.Steps(out.Events), func(name string) *corev1.ObjectReference { return childReference(ds, p, name) })
	left := Outcome{
		Owner: ds, Due: queue.Due{Deadline: out.LookAfter, Continue: out.Continue}, Events: events,
		NotStored: func(ctx context.Context, _ error) {
			s.Report(ctx, ds, events...) // children were written all the same, and no later pass reports it
		},
		Stored: func(*disaggregatedsetv1.DisaggregatedSet) error {
			s.noteConflicts(cache.MetaObjectToName(ds), p.Conflicts)
			return nil
		},
	}
	if out.Status != nil {
		next := *ds // shares the rest, which is not changed
		next.Status = *out.Status
		left.Next = &next
	}
	return left
}

// childReference returns a reference to a LeaderWorkerSet or a scaler of a set. One that was scaled has the version that the scaling met,
// so that two scalings have events of their own: events that differ only in their notes would be one.
func childReference(ds *disaggregatedsetv1.DisaggregatedSet, p plan.Plan, name string) *corev1.ObjectReference {
	ref := &corev1.ObjectReference{
		APIVersion: leaderworkersetv1.SchemeGroupVersion.String(), Kind: "LeaderWorkerSet", Namespace: ds.Namespace, Name: name,
	}
	if p.NamesScaler(name) {
		ref.APIVersion, ref.Kind = disaggregatedsetv1.SchemeGroupVersion.String(), "DisaggregatedSetRoleScaler"
		return ref
	}
	for i := range p.Slices {
		for _, scaling := range p.Slices[i].Scale {
			if scaling.Name == name {
				ref.UID, ref.ResourceVersion = scaling.UID, scaling.ResourceVersion
			}
		}
	}
	return ref
}

func (s *Syncer) noteConflicts(key cache.ObjectName, names []string) {
	if len(names) == 0 {
		s.conflicts.Forget(key)
		return
	}
	noted := map[string]bool{}
	for _, name := range names {
		noted[name] = true
	}
	s.conflicts.Note(key, noted)
}
