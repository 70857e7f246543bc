// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the DisaggregatedSet resource and its status to the generic registry store.
package storage

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/collisions"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/status"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
)

// New returns the storage of disaggregatedsets and of their status by name, over one store.
func New(host provider.Host) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme)
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &disaggregatedset.DisaggregatedSet{} },
		NewListFunc:               func() runtime.Object { return &disaggregatedset.DisaggregatedSetList{} },
		DefaultQualifiedResource:  disaggregatedset.Resource("disaggregatedsets"),
		SingularQualifiedResource: disaggregatedset.Resource("disaggregatedset"),
		CreateStrategy:            bounds.CreateStrategy{RESTCreateStrategy: main},
		UpdateStrategy:            bounds.UpdateStrategy{RESTUpdateStrategy: main},
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            table.Convertor[*disaggregatedset.DisaggregatedSet]{Columns: columns, Row: row},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: host.Getter}); err != nil {
		return nil, fmt.Errorf("completing the store of disaggregatedsets: %w", err)
	}
	store.BeginCreate = host.Neighbors.BeginCreate(collisions.Find)
	return map[string]rest.Storage{
		"disaggregatedsets":        bounds.NewStore(store, disaggregatedset.Kind("DisaggregatedSet")),
		"disaggregatedsets/status": status.New(store, strategy.NewStatusStrategy(main)),
	}, nil
}

// columns are the columns of kubectl get.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "name of the set, unique in its namespace"},
	{Name: "Age", Type: "date", Description: "creation time"},
}

// row returns the cells of the columns.
func row(ds *disaggregatedset.DisaggregatedSet, age string) []any { return []any{ds.Name, age} }
