// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disaggregatedset holds the strategies of the DisaggregatedSet resource and of its status.
package disaggregatedset

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset"
)

// Strategy creates, updates and deletes DisaggregatedSets.
type Strategy struct {
	strategy.Main[*disaggregatedset.DisaggregatedSet, disaggregatedset.DisaggregatedSetStatus]
}

// StatusStrategy updates the status of DisaggregatedSets.
type StatusStrategy = strategy.Status[*disaggregatedset.DisaggregatedSet, disaggregatedset.DisaggregatedSetStatus]

// NewStrategy returns the strategy of the main resource. The typer knows the kinds of the group.
func NewStrategy(typer runtime.ObjectTyper) Strategy {
	return Strategy{strategy.New(typer, strategy.Kind[*disaggregatedset.DisaggregatedSet, disaggregatedset.DisaggregatedSetStatus]{
		Version: disaggregatedsetv1.SchemeGroupVersion,
		Parts: func(ds *disaggregatedset.DisaggregatedSet) (any, *disaggregatedset.DisaggregatedSetStatus) {
			return &ds.Spec, &ds.Status
		},
		ValidateCreate: validation.ValidateDisaggregatedSetCreate, ValidateUpdate: validation.ValidateDisaggregatedSetUpdate,
		ValidateStatus: validation.ValidateDisaggregatedSetStatusUpdate, Warnings: warningsOf,
		OwnSpec: ownSpec,
	})}
}

// ownSpec returns the fields of the LeaderWorkerSets of all roles that upstream's types lack.
func ownSpec(ds *disaggregatedset.DisaggregatedSet) []strategy.Field {
	var fields []strategy.Field
	for i := range ds.Spec.Roles {
		role := &ds.Spec.Roles[i]
		fields = append(fields, leaderworkerset.OwnFields(&role.Spec, "spec", "roles", fieldpath.KeyByFields("name", role.Name), "spec")...)
	}
	return fields
}

// NewStatusStrategy derives the strategy of the status subresource.
func NewStatusStrategy(s Strategy) StatusStrategy { return strategy.NewStatus(s.Main) }

// PrepareForCreate drops the status, and what templates cannot have.
func (s Strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	prune(obj.(*disaggregatedset.DisaggregatedSet))
	s.Main.PrepareForCreate(ctx, obj)
}

// PrepareForUpdate keeps the status, drops what templates cannot have, and counts a change of the spec in the generation.
func (s Strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	prune(obj.(*disaggregatedset.DisaggregatedSet))
	s.Main.PrepareForUpdate(ctx, obj, old)
}

// prune keeps of the metadata of roles and templates what the published schema has.
func prune(ds *disaggregatedset.DisaggregatedSet) {
	for i := range ds.Spec.Roles {
		role := &ds.Spec.Roles[i]
		role.ObjectMeta = strategy.TemplateMetadata(role.ObjectMeta)
		template := &role.Spec.LeaderWorkerTemplate
		template.WorkerTemplate.ObjectMeta = strategy.TemplateMetadata(template.WorkerTemplate.ObjectMeta)
		if leader := template.LeaderTemplate; leader != nil {
			leader.ObjectMeta = strategy.TemplateMetadata(leader.ObjectMeta)
		}
		for j := range template.VolumeClaimTemplates {
			claim := &template.VolumeClaimTemplates[j]
			claim.ObjectMeta = strategy.TemplateMetadata(claim.ObjectMeta)
		}
	}
}

// warningsOf returns the warnings about a set. Its LeaderWorkerSets get those about their templates too, but no user creates them.
func warningsOf(ds *disaggregatedset.DisaggregatedSet) []string {
	w := &strategy.Warnings{}
	for _, warning := range validation.Warnings(ds) {
		w.Append(warning)
	}
	for i := range ds.Spec.Roles {
		path := field.NewPath("spec", "roles").Index(i).Child("spec", "leaderWorkerTemplate")
		for _, warning := range leaderworkerset.TemplateWarnings(&ds.Spec.Roles[i].Spec.LeaderWorkerTemplate, path) {
			w.Append(warning)
		}
	}
	return w.Texts()
}
