// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// adopt gives orphans their controllers. The set, and the leader pods that get children, are read from the API first: a
// cache may show one that is gone, and whose children the garbage collector would delete.
func (a *applier) adopt(ctx context.Context, adoptions []plan.Adoption) error {
	if len(adoptions) == 0 || children.Ended(ctx) {
		return nil
	}
	owners, err := a.liveOwners(ctx, adoptions)
	if err != nil {
		return err
	}
	done := make([]bool, len(adoptions))
	var errs []error
	for _, kind := range []plan.OrphanKind{plan.OrphanRevision, plan.OrphanService, plan.OrphanStatefulSet} {
		errs = append(errs, a.adoptKind(ctx, kind, adoptions, owners, done))
	}
	err = children.FirstErrors(errs...)
	for i := range done {
		if done[i] {
			a.results.Adopted = append(a.results.Adopted, i)
		}
	}
	a.accepted(len(a.results.Adopted))
	if err != nil && !apierrors.IsConflict(err) && !children.TerminatingNamespace(err) {
		a.results.AdoptError = "Failed to adopt " + err.Error()
	}
	return err
}

// adoptKind adopts the orphans of one kind: what is refused for one kind may be allowed for another. It notes which it has adopted.
func (a *applier) adoptKind(ctx context.Context, kind plan.OrphanKind, adoptions []plan.Adoption, owners sets.Set[types.UID],
	done []bool) error {
	var of []int
	for i := range adoptions {
		if adoptions[i].Kind == kind && owners.Has(adoptions[i].Owner.UID) {
			of = append(of, i)
		}
	}
	return a.statefulSets.Each(ctx, a.set, len(of), func(ctx context.Context, n int) error {
		adopted, err := a.adoptOne(ctx, &adoptions[of[n]])
		done[of[n]] = adopted
		return err
	})
}

// asks returns whether the API is asked now to adopt an orphan.
func (a *applier) asks(adoption plan.Adoption) bool {
	ref := children.Ref{Name: adoption.Name, UID: adoption.UID}
	switch adoption.Kind {
	case plan.OrphanStatefulSet:
		return a.statefulSets.MayAdopt(a.set, ref) == nil
	case plan.OrphanService:
		return a.services.MayAdopt(a.set, ref) == nil
	}
	return a.revisions.MayAdopt(a.set, ref) == nil
}

// liveOwners returns the UIDs of the owners that exist, and of the set only if it is not being deleted. They are not read in a pass in
// which the API is not asked to adopt anything; then it returns all of them.
func (a *applier) liveOwners(ctx context.Context, adoptions []plan.Adoption) (sets.Set[types.UID], error) {
	owners := sets.New[types.UID]()
	if !slices.ContainsFunc(adoptions, a.asks) {
		for i := range adoptions {
			owners.Insert(adoptions[i].Owner.UID)
		}
		return owners, nil
	}
	switch lives, err := children.Lives(ctx, a.deps.Sets(a.set.Namespace), a.set); {
	case err != nil:
		return nil, fmt.Errorf("reading leaderworkerset %s, which is to adopt children: %w", a.key, err)
	case !lives:
		return owners, nil
	}
	owners.Insert(a.set.UID)
	if !slices.ContainsFunc(adoptions, func(adoption plan.Adoption) bool { return adoption.Owner.UID != a.set.UID }) {
		return owners, nil
	}
	leaders, err := a.deps.Leaders(ctx, a.key)
	if err != nil {
		return nil, fmt.Errorf("reading the leader pods of leaderworkerset %s, which are to adopt children: %w", a.key, err)
	}
	for _, leader := range leaders {
		owners.Insert(leader.UID)
	}
	return owners, nil
}

// adoptOne gives an orphan its controller. It returns false if it is an orphan no more.
func (a *applier) adoptOne(ctx context.Context, adoption *plan.Adoption) (bool, error) {
	switch adoption.Kind {
	case plan.OrphanStatefulSet:
		return adoptChild(ctx, a, a.statefulSets, adoption)
	case plan.OrphanService:
		return adoptChild(ctx, a, a.services, adoption)
	}
	return adoptChild(ctx, a, a.revisions, adoption)
}

// adoptChild gives a child of a kind its controller.
func adoptChild[T metav1.Object](ctx context.Context, a *applier, w *children.Writer[T], adoption *plan.Adoption) (bool, error) {
	ref := children.Ref{Name: adoption.Name, UID: adoption.UID}
	adopted, err := w.Adopt(ctx, a.set, ref, adoption.Owner, func(child T) bool { return plan.OrphanOf(child) != nil })
	if err != nil {
		err = fmt.Errorf("%s %s: %w", adoption.Kind, adoption.Name, err)
	}
	return adopted, err
}
