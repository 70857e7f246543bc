// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
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

// Syncer carries out what is decided about DisaggregatedSets: Observe before the decisions of package plan, Apply and
// Finish after them. It decides nothing itself.
type Syncer struct {
	deps     SyncerConfig
	sets     *children.Writer[*leaderworkersetv1.LeaderWorkerSet]
	services *children.Writer[*corev1.Service]
	scalers  *children.Writer[*disaggregatedsetv1.DisaggregatedSetRoleScaler]
	// conflicts are the names of scalers that others have and that were reported.
	conflicts *children.Notes[map[string]bool]
	// former is since when caches show LeaderWorkerSets of sets that had the name before.
	former *children.Notes[formerSince]
}

// NewSyncer returns a Syncer that remembers nothing.
func NewSyncer(deps SyncerConfig) *Syncer {
	return &Syncer{
		deps: deps,
		sets: children.NewWriter(deps.Host, leaderworkersetv1.Kind("LeaderWorkerSet"), resourceChildren, "leaderworkerset",
			deps.LeaderWorkerSets),
		services: children.NewWriter(deps.Host, corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), resourceServices, "service",
			deps.Services),
		scalers: children.NewWriter(deps.Host, disaggregatedsetv1.Kind("DisaggregatedSetRoleScaler"), resourceScalers,
			"disaggregatedsetrolescaler",
			func(namespace string) children.Client[*disaggregatedsetv1.DisaggregatedSetRoleScaler] {
				return deps.Scalers(namespace)
			}),
		conflicts: children.NotesOf[map[string]bool](deps.Host), former: children.NotesOf[formerSince](deps.Host),
	}
}

// Finish stores the next status, and then reports what was done.
func (s *Syncer) Finish(ctx context.Context, obs *plan.Observed, p plan.Plan, out plan.Outcome) error {
	ds, key := obs.Set, cache.MetaObjectToName(obs.Set)
	if out.Status != nil {
		next := *ds // shares the rest, which is not changed
		next.Status = *out.Status
		_, found, err := children.StoreStatus(ctx, s.deps.Host, s.deps.Sets(ds.Namespace), resourceSets, "disaggregatedset", &next)
		if err != nil {
			s.report(ctx, ds, out.Events) // children were written all the same, and no later pass reports it
		}
		if err != nil || !found {
			return err
		}
	}
	s.report(ctx, ds, out.Events)
	s.noteConflicts(key, p.Conflicts)
	return nil
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

func (s *Syncer) report(ctx context.Context, ds *disaggregatedsetv1.DisaggregatedSet, events []plan.Event) {
	for _, event := range events {
		send(s.deps.Recorder, ds, event)
		klog.FromContext(ctx).V(4).Info("Reported an event", "reason", event.Reason)
	}
}

// forget drops what is remembered about a set that is gone.
func (s *Syncer) forget(key cache.ObjectName) {
	s.deps.Host.Forget(key)
}
