// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the DisaggregatedSet resource and its status to the generic registry store.
package storage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/collisions"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/resource"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
)

// New returns the storage of disaggregatedsets and of their status by name, over one store.
func New(host provider.Host) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme)
	r := resource.Resource{
		Kind:     disaggregatedset.Kind("DisaggregatedSet"),
		New:      func() runtime.Object { return &disaggregatedset.DisaggregatedSet{} },
		NewList:  func() runtime.Object { return &disaggregatedset.DisaggregatedSetList{} },
		Strategy: main, Status: strategy.NewStatusStrategy(main), Collisions: collisions.Find,
		Table: table.Convertor[*disaggregatedset.DisaggregatedSet]{Columns: columns, Row: row},
	}
	served, _, err := r.Serve(host)
	return served, err
}

// columns are the columns of kubectl get.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "name of the set, unique in its namespace"},
	{Name: "Age", Type: "date", Description: "creation time"},
	{Name: "Reason", Type: "string", Priority: 1, Description: "why children of the set cannot be created, in one word; blank while nothing " +
		"is known to refuse them"},
}

// row returns the cells of the columns.
func row(ds *disaggregatedset.DisaggregatedSet, age string) []any {
	return []any{ds.Name, age, table.Text(helper.Reason(ds.Status.Conditions))}
}
