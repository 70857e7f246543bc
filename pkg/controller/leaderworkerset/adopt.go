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

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// adopt gives orphans their controllers. The set, and the leader pods that get children, are read from the API first: a cache may show one that is gone, and whose children
// the garbage collector would delete.
func (a *applier) adopt(ctx context.Context, adoptions []plan.Adoption) error {
	if len(adoptions) == 0 || ctx.Err() != nil {
		return nil
	}
	owners, err := a.liveOwners(ctx, adoptions)
	if err != nil {
		return err
	}
	done := make([]bool, len(adoptions))
	err = a.statefulSets.InOrder(ctx, a.set, len(adoptions), func(ctx context.Context, i int) error {
		if !owners.Has(adoptions[i].Owner.UID) {
			return children.ErrSkipped
		}
		adopted, err := a.adoptOne(ctx, &adoptions[i])
		done[i] = adopted
		return err
	})
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

// liveOwners returns the UIDs of the owners that exist, and of the set only if it is not being deleted.
func (a *applier) liveOwners(ctx context.Context, adoptions []plan.Adoption) (sets.Set[types.UID], error) {
	owners := sets.New[types.UID]()
	live, err := a.deps.Sets(a.set.Namespace).Get(ctx, a.set.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return owners, nil
	case err != nil:
		return nil, fmt.Errorf("reading leaderworkerset %s, which is to adopt children: %w", a.key, err)
	case live.UID != a.set.UID || live.DeletionTimestamp != nil:
		return owners, nil
	}
	owners.Insert(live.UID)
	if !slices.ContainsFunc(adoptions, func(adoption plan.Adoption) bool { return adoption.Owner.UID != live.UID }) {
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

// adoptChild adds a controller to the owners of the child of a kind, as it is stored now.
func adoptChild[T metav1.Object](ctx context.Context, a *applier, w *children.Writer[T], adoption *plan.Adoption) (bool, error) {
	const path = "/metadata/ownerReferences"
	child, err := w.Get(ctx, a.set.Namespace, adoption.Name)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s %s: %w", adoption.Kind, adoption.Name, err)
	case child.GetUID() != adoption.UID || plan.OrphanOf(child) == nil:
		return false, nil // the watch is about to show that
	}
	owners := append(slices.Clone(child.GetOwnerReferences()), adoption.Owner)
	version, err := w.Patch(ctx, a.set, adoption.Name, child.GetResourceVersion(), []children.Operation{children.Set(path, owners)})
	if err != nil {
		return false, fmt.Errorf("%s %s: %w", adoption.Kind, adoption.Name, err)
	}
	return version != "", nil
}
