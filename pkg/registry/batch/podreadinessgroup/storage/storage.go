// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the PodReadinessGroup resource and its status to the generic registry store.
package storage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/podreadinessgroup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/resource"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// New returns the storage of podreadinessgroups and of their status by name, over one store.
func New(host provider.Host) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme)
	r := resource.Resource{
		Kind:     batch.Kind("PodReadinessGroup"),
		New:      func() runtime.Object { return &batch.PodReadinessGroup{} },
		NewList:  func() runtime.Object { return &batch.PodReadinessGroupList{} },
		Strategy: main, Status: strategy.NewStatusStrategy(main),
		Table: table.Convertor[*batch.PodReadinessGroup]{Columns: columns, Row: row},
	}
	served, _, err := r.Serve(host)
	return served, err
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
	if unreadable.Is(group) {
		return []any{group.Name, unreadable.Phase, nil, nil, nil, age, nil, nil}
	}
	return []any{
		group.Name, table.Text(string(s.Phase)), int64(s.Pods), int64(s.Running), int64(s.Ready), age, minMember, string(group.Spec.ReadyWhen),
	}
}
