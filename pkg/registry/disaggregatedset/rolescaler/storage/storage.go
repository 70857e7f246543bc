// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the DisaggregatedSetRoleScaler resource, its status and its scale to the generic registry store.
package storage

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/rolescaler"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/scale"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/status"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
)

// New returns the storage of disaggregatedsetrolescalers and of their subresources by name, over one store.
func New(host provider.Host) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme)
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &disaggregatedset.DisaggregatedSetRoleScaler{} },
		NewListFunc:               func() runtime.Object { return &disaggregatedset.DisaggregatedSetRoleScalerList{} },
		DefaultQualifiedResource:  disaggregatedset.Resource("disaggregatedsetrolescalers"),
		SingularQualifiedResource: disaggregatedset.Resource("disaggregatedsetrolescaler"),
		CreateStrategy:            bounds.CreateStrategy{RESTCreateStrategy: main},
		UpdateStrategy:            bounds.UpdateStrategy{RESTUpdateStrategy: main},
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            table.Convertor[*disaggregatedset.DisaggregatedSetRoleScaler]{Columns: columns, Row: row},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: host.Getter}); err != nil {
		return nil, fmt.Errorf("completing the store of disaggregatedsetrolescalers: %w", err)
	}
	host.Neighbors.Serve(store.DefaultQualifiedResource, store.Get)
	return map[string]rest.Storage{
		"disaggregatedsetrolescalers":        bounds.NewStore(store, disaggregatedset.Kind("DisaggregatedSetRoleScaler"), "dsrs"),
		"disaggregatedsetrolescalers/status": status.New(store, strategy.NewStatusStrategy(main)),
		"disaggregatedsetrolescalers/scale":  scale.New(store, scaleKind),
	}, nil
}

// scaleKind is what the scale of a scaler is: the groups of its role.
var scaleKind = scale.Kind[*disaggregatedset.DisaggregatedSetRoleScaler]{
	Target: func(s *disaggregatedset.DisaggregatedSetRoleScaler) (*scale.Target, error) {
		return &scale.Target{
			Size: &s.Spec.Replicas, Current: s.Status.Replicas, Selector: s.Status.Selector,
			Set:   func(size int32) { s.Spec.Replicas = size },
			Paths: []fieldpath.Path{fieldpath.MakePathOrDie("spec", "replicas")},
		}, nil
	},
	Validate: func(s *autoscalingv1.Scale) field.ErrorList {
		return validation.ValidateReplicas(s.Spec.Replicas, field.NewPath("spec", "replicas"))
	},
	Version: disaggregatedsetv1.SchemeGroupVersion,
	Columns: [4]string{
		"name of the scaler", "groups that the role should have", "groups that the role has, as last observed", "creation time of the scaler",
	},
}

// columns are the columns of kubectl get.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "name of the scaler, unique in its namespace"},
	{Name: "Desired", Type: "integer", Description: "groups that the role should have"},
	{Name: "Current", Type: "integer", Description: "groups that the role has, as last observed; blank while there are none"},
	{Name: "Age", Type: "date", Description: "creation time"},
}

// row returns the cells of the columns. A count that is 0 is absent from the status, and its cell is blank.
func row(s *disaggregatedset.DisaggregatedSetRoleScaler, age string) []any {
	var current any
	if n := s.Status.Replicas; n != 0 {
		current = int64(n)
	}
	return []any{s.Name, int64(s.Spec.Replicas), current, age}
}
