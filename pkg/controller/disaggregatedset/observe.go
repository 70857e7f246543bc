// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// formerWait is how long a set waits for the garbage collector to take LeaderWorkerSets from a former set of its name, or to delete them.
const formerWait = 30 * time.Second

// formerSince is since when caches show LeaderWorkerSets of sets that had the name of a set before.
type formerSince struct {
	set   types.UID
	since time.Time
}

// Waits returns whether LeaderWorkerSets of a former set are about to lose their owner, or to be deleted.
// Another revision must not start beside them.
func (k loopKind) Waits(_ context.Context, key cache.ObjectName, ds *disaggregatedsetv1.DisaggregatedSet) (bool, error) {
	exist, err := k.deps.Caches.Former(ds)
	if !exist || err != nil {
		k.former.Forget(key)
		return err != nil, err
	}
	noted, now := k.former.Noted(key), k.deps.Clock.Now()
	if noted.set != ds.UID {
		noted = formerSince{ds.UID, now}
		k.former.Note(key, noted)
	}
	return now.Sub(noted.since) < formerWait, nil
}

// Children returns the set and its children as the caches have them.
func (k loopKind) Children(_ context.Context, key cache.ObjectName,
	ds *disaggregatedsetv1.DisaggregatedSet) (*plan.Observed, []consistency.Child, error) {
	obs := &plan.Observed{Set: ds, Conflicts: k.conflicts.Noted(key), TroubledSince: k.troubled.Noted(key),
		Now: metav1.NewTime(k.deps.Clock.Now().Truncate(time.Second))}
	var err error
	if obs.Children, err = k.deps.Caches.LeaderWorkerSets(ds); err != nil {
		return nil, nil, err
	}
	if obs.Services, err = k.deps.Caches.Services(ds); err != nil {
		return nil, nil, err
	}
	if obs.Scalers, err = k.deps.Caches.Scalers(ds); err != nil {
		return nil, nil, err
	}
	all := consistency.ChildrenOf(obs.Scalers)
	for i := range obs.Children {
		all = append(all, consistency.Child{UID: obs.Children[i].UID, Deleting: obs.Children[i].Deleting})
	}
	for i := range obs.Services {
		all = append(all, consistency.Child{UID: obs.Services[i].UID, Deleting: obs.Services[i].Deleting})
	}
	return obs, all, nil
}

// Complete adds what else a decision is made on.
func (k loopKind) Complete(_ context.Context, key cache.ObjectName, obs *plan.Observed) (lags bool, err error) {
	if obs.Orphans, err = k.deps.Caches.Orphans(key); err != nil {
		return false, err
	}
	if obs.Unreadable, err = k.deps.Caches.Unreadable(obs.Set); err != nil {
		return false, err
	}
	return false, k.observeTaken(obs)
}

// observeTaken adds the names of scalers that exist and that the set neither controls nor can adopt.
func (s *Syncer) observeTaken(obs *plan.Observed) error {
	for i := range obs.Set.Spec.Roles {
		role := &obs.Set.Spec.Roles[i]
		if !helper.External(role) {
			continue
		}
		name := helper.ScalerName(obs.Set.Name, role.Name)
		scaler, err := s.deps.Caches.Scaler(cache.NewObjectName(obs.Set.Namespace, name))
		if err != nil {
			return err
		}
		if scaler != nil && !unreadable.Is(scaler) && !metav1.IsControlledBy(scaler, obs.Set) && plan.OrphanOf(scaler) == nil {
			if obs.TakenScalers == nil {
				obs.TakenScalers = map[string]bool{}
			}
			obs.TakenScalers[name] = true
		}
	}
	return nil
}
