// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the PodReadinessGroup resource and its status to the generic registry store.
package storage

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/podreadinessgroup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/status"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
)

// New returns the storage of podreadinessgroups and of their status by name, over one store.
func New(getter generic.RESTOptionsGetter, typer runtime.ObjectTyper) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(typer)
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &batch.PodReadinessGroup{} },
		NewListFunc:               func() runtime.Object { return &batch.PodReadinessGroupList{} },
		DefaultQualifiedResource:  batch.Resource("podreadinessgroups"),
		SingularQualifiedResource: batch.Resource("podreadinessgroup"),
		CreateStrategy:            bounds.CreateStrategy{RESTCreateStrategy: main},
		UpdateStrategy:            bounds.UpdateStrategy{RESTUpdateStrategy: main},
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            table.Convertor[*batch.PodReadinessGroup]{Columns: columns, Row: row},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter}); err != nil {
		return nil, fmt.Errorf("completing the store of podreadinessgroups: %w", err)
	}
	return map[string]rest.Storage{
		"podreadinessgroups":        bounds.NewStore(store, batch.Kind("PodReadinessGroup")),
		"podreadinessgroups/status": status.New(store, strategy.NewStatusStrategy(main)),
	}, nil
}

// columns are the columns of kubectl get. Clients show those of priority 1 with -o wide only.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "name of the group, unique in its namespace"},
	{Name: "Phase", Type: "string", Description: "Pending, Ready or Degraded"},
	{Name: "Pods", Type: "integer", Description: "pods that belong to the group"},
	{Name: "Running", Type: "integer", Description: "pods that run or have succeeded"},
	{Name: "Ready", Type: "integer", Description: "pods with the label which says that the group is ready"},
	{Name: "Age", Type: "date", Description: "creation time"},
	{Name: "Min-Member", Type: "integer", Priority: 1, Description: "number of pods that must run; blank if the pods or their owners say it"},
	{Name: "Ready-When", Type: "string", Priority: 1, Description: "what counts for a pod: Running or Ready"},
}

// row returns the cells of the columns.
func row(group *batch.PodReadinessGroup, age string) []any {
	var minMember any
	if n := group.Spec.MinMember; n != nil {
		minMember = int64(*n)
	}
	s := &group.Status
	return []any{
		group.Name, table.Text(string(s.Phase)), int64(s.Pods), int64(s.Running), int64(s.Ready), age, minMember, string(group.Spec.ReadyWhen),
	}
}
