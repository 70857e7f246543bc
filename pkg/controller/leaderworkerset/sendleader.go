// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// This file creates the leader StatefulSet and applies it. A server-side apply is merged into whatever object has the name, so that it is
// only sent to a StatefulSet whose UID is known. The fields of a StatefulSet that was created belong to its creation. Before it is
// applied, they become fields of applies: else a field that the set no longer has would stay.

// sendLeader applies the StatefulSet to the version that was observed, so that a decision never meets another state. If none was
// observed, it is created. It returns what is stored, and what was sent.
func (a *applier) sendLeader(ctx context.Context, wanted *appsv1.StatefulSet) (stored, sent *appsv1.StatefulSet, err error) {
	if live := a.obs.Leader; live != nil {
		stored, err = a.patchLeader(ctx, wanted, live)
		return stored, wanted, err
	}
	stored, found, err := a.createLeader(ctx, wanted)
	if found != nil {
		wanted = plan.ReleasingNone(wanted, found)
		stored, err = a.patchLeader(ctx, wanted, found)
	}
	return stored, wanted, err
}

// createLeader creates the StatefulSet. It returns what is stored, or what was found under its name and belongs to the set.
func (a *applier) createLeader(ctx context.Context, wanted *appsv1.StatefulSet) (stored, found *appsv1.StatefulSet, err error) {
	done := a.statefulSets.CreateAll(ctx, a.set, children.Creations[*appsv1.StatefulSet]{
		Children: []*appsv1.StatefulSet{wanted}, FieldManager: leaderworkersetv1.FieldManager, TakenFor: plan.RetryNamesAfter(*a.obs),
		Template: func(*appsv1.StatefulSet) string { return "" },
		Repair: func(_ context.Context, existing *appsv1.StatefulSet, _ error) (children.Result, error) {
			found = existing // labels that it has lost are applied
			return children.Exists, nil
		},
		Stored: func(_, created *appsv1.StatefulSet) { stored = created },
	})
	switch {
	case stored != nil, found != nil:
		return stored, found, nil
	case done.Results[0] == children.NameTaken:
		return nil, nil, errTaken
	case done.Errors[0] != nil:
		return nil, nil, done.Errors[0]
	}
	return nil, nil, changed(wanted)
}

// changed is the error for a StatefulSet that is not what was observed: the next pass sees what it is.
func changed(sts *appsv1.StatefulSet) error {
	return apierrors.NewConflict(appsv1.Resource(resourceStatefulSets), sts.Name, errNotTried)
}

func (a *applier) patchLeader(ctx context.Context, wanted, live *appsv1.StatefulSet) (*appsv1.StatefulSet, error) {
	guard, what, value := a.statefulSets.Guard(), plan.Differs(live, wanted), plan.ApplyHash(wanted)
	if err := guard.ChangingTo(a.set, live, what, value); err != nil {
		return nil, err
	}
	live, err := a.own(ctx, live)
	if err != nil {
		return nil, err
	}
	body, err := applyBody(wanted, live)
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: leaderworkersetv1.FieldManager, Force: new(true)}
	stored, err := a.changeLeader(ctx, live, changeApply, types.ApplyPatchType, body, options)
	if err == nil {
		guard.ChangedTo(a.set, live, what, value)
	}
	return stored, err
}

func (a *applier) changeLeader(ctx context.Context, live *appsv1.StatefulSet, change string, kind types.PatchType, body []byte,
	options metav1.PatchOptions) (stored *appsv1.StatefulSet, err error) {
	err = a.statefulSets.Changing(a.set, plan.Ref{Name: live.Name}, change, func() error {
		stored, err = a.deps.StatefulSets(a.set.Namespace).Patch(ctx, live.Name, kind, body, options)
		return err
	})
	return stored, err
}

// theManager is what others may change after fields were made those of applies.
const theManager = "metadata.managedFields"

// own returns a version of a StatefulSet whose fields belong to applies. It differs from the live one in nothing else.
func (a *applier) own(ctx context.Context, live *appsv1.StatefulSet) (*appsv1.StatefulSet, error) {
	if !plan.OwnedAsCreated(live) {
		return live, nil
	}
	found, err := a.statefulSets.Get(ctx, a.set.Namespace, live.Name) // caches do not have the fields
	switch {
	case err != nil:
		return nil, err
	case found.UID != live.UID || found.ResourceVersion != live.ResourceVersion:
		return nil, changed(live)
	}
	guard := a.statefulSets.Guard()
	if err := guard.ChangingTo(a.set, live, theManager, ""); err != nil {
		return nil, err
	}
	body, err := csaupgrade.UpgradeManagedFieldsPatch(found, sets.New(leaderworkersetv1.FieldManager), leaderworkersetv1.FieldManager)
	if err != nil || body == nil {
		return found, err
	}
	owned, err := a.changeLeader(ctx, live, changeOwn, types.JSONPatchType, body, metav1.PatchOptions{})
	if err == nil {
		guard.ChangedTo(a.set, live, theManager, "")
	}
	return owned, err
}
