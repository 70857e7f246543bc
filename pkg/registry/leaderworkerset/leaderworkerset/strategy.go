// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaderworkerset holds the strategies of the LeaderWorkerSet resource: what the server fills in, clears, checks and warns
// about when a set is created or changed, on the main resource, on its status, on its scale and by actions.
package leaderworkerset

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/actions"
)

// Strategy creates, updates and deletes LeaderWorkerSets.
type Strategy struct {
	strategy.Main[*leaderworkerset.LeaderWorkerSet, leaderworkerset.LeaderWorkerSetStatus]
	now func() time.Time
}

// NewStrategy returns the strategy of the main resource. The typer knows the kinds of the group. The clock sets the times in
// status.lastAction, in which the server records who paused or resumed a set.
func NewStrategy(typer runtime.ObjectTyper, now func() time.Time) Strategy {
	return Strategy{now: now, Main: strategy.New(typer, strategy.Kind[*leaderworkerset.LeaderWorkerSet, leaderworkerset.LeaderWorkerSetStatus]{
		Version: leaderworkersetv1.SchemeGroupVersion,
		Parts: func(lws *leaderworkerset.LeaderWorkerSet) (any, *leaderworkerset.LeaderWorkerSetStatus) {
			return &lws.Spec, &lws.Status
		},
		ValidateCreate: validation.ValidateLeaderWorkerSetCreate, ValidateUpdate: validation.ValidateLeaderWorkerSetUpdate,
		ValidateStatus: validation.ValidateLeaderWorkerSetStatusUpdate, Warnings: Warnings,
		OwnSpec: func(lws *leaderworkerset.LeaderWorkerSet) []strategy.Field { return OwnFields(&lws.Spec, "spec") },
		OwnStatus: func(lws *leaderworkerset.LeaderWorkerSet) []strategy.Field {
			return []strategy.Field{
				{Path: fieldpath.MakePathOrDie("status", "groups"), Value: &lws.Status.Groups},
				{Path: fieldpath.MakePathOrDie("status", "restart"), Value: &lws.Status.Restart},
			}
		},
	})}
}

// OwnFields returns the fields of a spec that upstream's types lack. The path to the spec begins with the parts. The limit of
// restarts is not one of them if nothing restarts groups: an update that turns restarts off ends it, too.
func OwnFields(spec *leaderworkerset.LeaderWorkerSetSpec, parts ...any) []strategy.Field {
	at := func(value any, names ...any) strategy.Field {
		return strategy.Field{Path: fieldpath.MakePathOrDie(slices.Concat(parts, names)...), Value: value}
	}
	fields := []strategy.Field{
		at(&spec.Paused, "paused"), at(&spec.RevisionHistoryLimit, "revisionHistoryLimit"),
		at(&spec.GroupRestartBackoff, "groupRestartBackoff"),
	}
	template := &spec.LeaderWorkerTemplate
	switch template.RestartPolicy {
	case leaderworkerset.RestartPolicyNone, leaderworkerset.RestartPolicyDefault:
		return fields
	}
	return append(fields, at(&template.MaxGroupRestarts, "leaderWorkerTemplate", "maxGroupRestarts"))
}

// PrepareForCreate drops the status, and brings the template into the form in which it is stored.
func (s Strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	normalize(&obj.(*leaderworkerset.LeaderWorkerSet).Spec.LeaderWorkerTemplate)
	s.Main.PrepareForCreate(ctx, obj)
}

// PrepareForUpdate keeps the status and what clients may not know, counts a change of the spec in the generation, and records who paused or
// resumed the set.
func (s Strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	next, prev := obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet)
	next.Status = *prev.Status.DeepCopy()
	s.KeepSpec(ctx, next, prev)
	normalize(&next.Spec.LeaderWorkerTemplate)
	if s.CountChange(next, prev) {
		actions.RecordEdit(next, prev, actions.Call{User: strategy.User(ctx), Now: s.now()})
	}
}

// normalize brings a template into the form in which it is stored: that of the published schema, with the present name of the
// restart policy. The kind of claims goes without saying; their encoding in the store has none.
func normalize(template *leaderworkerset.LeaderWorkerTemplate) {
	if template.RestartPolicy == leaderworkerset.RestartPolicyDefault {
		template.RestartPolicy = leaderworkerset.RestartPolicyNone
	}
	template.WorkerTemplate.ObjectMeta = strategy.TemplateMetadata(template.WorkerTemplate.ObjectMeta)
	if template.LeaderTemplate != nil {
		template.LeaderTemplate.ObjectMeta = strategy.TemplateMetadata(template.LeaderTemplate.ObjectMeta)
	}
	for i := range template.VolumeClaimTemplates {
		claim := &template.VolumeClaimTemplates[i]
		claim.TypeMeta, claim.ObjectMeta = metav1.TypeMeta{}, strategy.TemplateMetadata(claim.ObjectMeta)
	}
}

// WarningsOnUpdate returns the warnings that this write introduces, and those about the change.
func (Strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return warningsOnUpdate(obj.(*leaderworkerset.LeaderWorkerSet), old.(*leaderworkerset.LeaderWorkerSet))
}
