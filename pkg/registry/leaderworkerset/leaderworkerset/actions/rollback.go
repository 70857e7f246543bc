// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// maxNamed is how many revisions an error names.
const maxNamed = 20

// RollbackTo returns the rollback to one of these revisions. Those that another object controls are ignored.
func RollbackTo(all []appsv1.ControllerRevision) func(*leaderworkerset.LeaderWorkerSet, *batch.LeaderWorkerSetRollbackSpec,
	Call) (*batch.LeaderWorkerSetActionStatus, error) {
	return func(set *leaderworkerset.LeaderWorkerSet, spec *batch.LeaderWorkerSetRollbackSpec, call Call) (*batch.LeaderWorkerSetActionStatus,
		error) {
		own := provider.OwnRevisions(all, set.UID)
		slices.SortStableFunc(own, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
		return rollback(set, spec, own, call)
	}
}

// rollback makes the templates and the network of a set those of a former revision. The controller then rolls the groups, as after an edit.
func rollback(set *leaderworkerset.LeaderWorkerSet, spec *batch.LeaderWorkerSetRollbackSpec, own []*appsv1.ControllerRevision,
	call Call) (*batch.LeaderWorkerSetActionStatus, error) {
	if err := checkMeant(set, spec.Preconditions); err != nil {
		return nil, err
	}
	if repeats(set, leaderworkerset.ActionRollback, spec.Preconditions) &&
		(spec.ToRevision == 0 || spec.ToRevision == set.Status.LastAction.Revision) {
		return recorded(set, rolledBack(set)), nil
	}
	if err := checkGeneration(set, spec.Preconditions); err != nil {
		return nil, err
	}
	live, err := versioned(set)
	if err != nil {
		return nil, err
	}
	return rollbackTo(set, live, spec, own, call)
}

// rollbackTo is the rollback of a set that meets the preconditions.
func rollbackTo(
	set *leaderworkerset.LeaderWorkerSet, live *leaderworkersetv1.LeaderWorkerSet, spec *batch.LeaderWorkerSetRollbackSpec,
	own []*appsv1.ControllerRevision, call Call,
) (*batch.LeaderWorkerSetActionStatus, error) {
	if spec.ToRevision == 0 && pending(set, live, own) {
		last := set.Status.LastAction
		return nothing(set, fmt.Sprintf("the rollback to revision %d, requested%s by %s, has not begun; not rolled back again",
			last.Revision, call.ago(last.Time), last.User)), nil
	}
	target, err := choose(set, live, spec, own)
	if err != nil {
		return nil, err
	}
	if helper.SameRevision(live, target.Data.Raw) {
		return nothing(set, fmt.Sprintf("the LeaderWorkerSet is already at revision %d; nothing changed", target.Revision)), nil
	}
	if err := applyRevision(set, live, target); err != nil {
		return nil, conflict(set, "revision %d cannot be restored: %w", target.Revision, err)
	}
	record(set, leaderworkerset.LastAction{Action: leaderworkerset.ActionRollback, Reason: spec.Reason, Revision: target.Revision}, call)
	return recorded(set, rolledBack(set)), nil
}

func rolledBack(set *leaderworkerset.LeaderWorkerSet) string {
	message := fmt.Sprintf("the LeaderWorkerSet was rolled back to revision %d", set.Status.LastAction.Revision)
	if paused(set) {
		message += "; no group is replaced until it is resumed"
	}
	if ptr.Deref(set.Spec.RevisionHistoryLimit, 0) == 0 {
		message += "; spec.revisionHistoryLimit is 0, so that the revision which it leaves is deleted when the update is complete"
	}
	return message
}

// pending returns whether the set was rolled back, and the controller has not seen it yet. The revision before the
// current one is then the one that the set was at before: a request that is sent twice would undo itself.
func pending(set *leaderworkerset.LeaderWorkerSet, live *leaderworkersetv1.LeaderWorkerSet, own []*appsv1.ControllerRevision) bool {
	if !asLast(set, leaderworkerset.ActionRollback) || set.Status.ObservedGeneration >= set.Generation {
		return false
	}
	to := find(own, set.Status.LastAction.Revision)
	return to != nil && helper.SameRevision(live, to.Data.Raw)
}

func find(own []*appsv1.ControllerRevision, number int64) *appsv1.ControllerRevision {
	for _, r := range own {
		if r.Revision == number {
			return r
		}
	}
	return nil
}

// choose returns the revision that a request names; the newest one that differs from the spec if it names none.
func choose(
	set *leaderworkerset.LeaderWorkerSet, live *leaderworkersetv1.LeaderWorkerSet, spec *batch.LeaderWorkerSetRollbackSpec,
	own []*appsv1.ControllerRevision,
) (*appsv1.ControllerRevision, error) {
	if spec.ToRevision > 0 {
		if to := find(own, spec.ToRevision); to != nil {
			return to, nil
		}
		return nil, apierrors.NewInvalid(batch.Kind("LeaderWorkerSetRollback"), set.Name, field.ErrorList{field.Invalid(
			field.NewPath("spec", "toRevision"), spec.ToRevision, "must be the number of a revision of the LeaderWorkerSet: "+exist(set, own))})
	}
	for _, r := range slices.Backward(own) {
		if !helper.SameRevision(live, r.Data.Raw) {
			return r, nil
		}
	}
	return nil, conflict(set, "there is no former revision to return to: %s", exist(set, own))
}

// exist names the revisions that exist, and says why there are no others and how to keep more.
func exist(set *leaderworkerset.LeaderWorkerSet, own []*appsv1.ControllerRevision) string {
	var numbers []string
	for _, r := range own {
		numbers = append(numbers, strconv.FormatInt(r.Revision, 10))
	}
	if n := len(numbers) - maxNamed; n > 0 {
		numbers = append([]string{fmt.Sprintf("%d older ones", n)}, numbers[n:]...)
	}
	list := "none exists"
	switch {
	case len(numbers) == 1:
		list = "only revision " + numbers[0] + " exists"
	case len(numbers) > 1:
		list = strings.Join(numbers, ", ") + " exist"
	}
	limit := ptr.Deref(set.Spec.RevisionHistoryLimit, 0)
	if limit == 0 {
		return list + "; spec.revisionHistoryLimit is 0, so that former revisions are deleted when an update is complete; a higher number " +
			"keeps that many from the next update on"
	}
	return fmt.Sprintf("%s; spec.revisionHistoryLimit is %d, so that as many former revisions are kept when an update is complete", list,
		limit)
}
