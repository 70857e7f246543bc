// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// adopt gives orphans the set as their controller, in any order. The set is read from the API first: a cache may show
// one that is gone, and whose children the garbage collector would delete.
func (a *applier) adopt(ctx context.Context, adoptions []plan.Adoption) error {
	if len(adoptions) == 0 || children.Ended(ctx) {
		return nil
	}
	lives, err := a.lives(ctx, adoptions)
	if err != nil {
		err = fmt.Errorf("reading disaggregatedset %s/%s, which is to adopt children: %w", a.ds.Namespace, a.ds.Name, err)
		a.refuse(adopting(adoptions[0].Kind, adoptions[0].Name), "get disaggregatedsets", err)
		return err
	}
	if !lives {
		return nil
	}
	order, done := a.deps.Shuffle(len(adoptions)), make([]bool, len(adoptions))
	err = a.deps.Runner.Do(ctx, cache.MetaObjectToName(a.ds), len(adoptions), func(ctx context.Context, n int) error {
		i := order[n]
		what := &adoptions[i]
		_, err := a.try(adopting(what.Kind, what.Name), "adopt "+string(what.Kind), func() error {
			adopted, err := a.adoptOne(ctx, what)
			done[i] = adopted
			return err
		})
		return err
	})
	for i := range done {
		if done[i] {
			a.results.Adopted = append(a.results.Adopted, i)
		}
	}
	return err
}

// lives returns whether the set exists and is not being deleted. It is not read in a pass in which the API is not asked to adopt anything.
func (a *applier) lives(ctx context.Context, adoptions []plan.Adoption) (bool, error) {
	if !slices.ContainsFunc(adoptions, a.asks) {
		return true, nil
	}
	return children.Lives(ctx, a.deps.Sets(a.ds.Namespace), a.ds)
}

// asks returns whether the API is asked now to adopt an orphan.
func (a *applier) asks(what plan.Adoption) bool {
	switch what.Kind {
	case plan.OrphanLeaderWorkerSet:
		return a.sets.MayAdopt(a.ds, what.Ref) == nil
	case plan.OrphanService:
		return a.services.MayAdopt(a.ds, what.Ref) == nil
	}
	return a.scalers.MayAdopt(a.ds, what.Ref) == nil
}

// adoptOne gives an orphan its controller. It returns false if it is an orphan no more.
func (a *applier) adoptOne(ctx context.Context, what *plan.Adoption) (bool, error) {
	switch what.Kind {
	case plan.OrphanLeaderWorkerSet:
		return adoptChild(ctx, a, a.sets, what)
	case plan.OrphanService:
		return adoptChild(ctx, a, a.services, what)
	}
	return adoptChild(ctx, a, a.scalers, what)
}

// adoptChild gives a child of a kind its controller.
func adoptChild[T metav1.Object](ctx context.Context, a *applier, w *children.Writer[T], what *plan.Adoption) (bool, error) {
	return w.Adopt(ctx, a.ds, what.Ref, what.Owner, func(child T) bool { return orphanFor(a.ds, child) })
}

// orphanFor returns whether the set may adopt an object.
func orphanFor(ds *disaggregatedsetv1.DisaggregatedSet, object metav1.Object) bool {
	orphan := plan.OrphanOf(object)
	return orphan != nil && orphan.Set == ds.Name
}
