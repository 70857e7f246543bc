// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the DisaggregatedSetRoleScaler resource, its status and its scale to the generic registry store.
package storage

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/rolescaler"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/resource"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/scale"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
)

// New returns the storage of disaggregatedsetrolescalers and of their subresources by name, over one store.
func New(host provider.Host) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme)
	r := resource.Resource{
		Kind: disaggregatedset.Kind("DisaggregatedSetRoleScaler"), ShortNames: []string{"dsrs"},
		New:      func() runtime.Object { return &disaggregatedset.DisaggregatedSetRoleScaler{} },
		NewList:  func() runtime.Object { return &disaggregatedset.DisaggregatedSetRoleScalerList{} },
		Strategy: main, Status: strategy.NewStatusStrategy(main),
		Table: table.Convertor[*disaggregatedset.DisaggregatedSetRoleScaler]{Columns: columns, Row: row},
	}
	served, store, err := r.Serve(host)
	if err != nil {
		return nil, err
	}
	served["disaggregatedsetrolescalers/scale"] = scale.New(store, scaleKind)
	return served, nil
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
