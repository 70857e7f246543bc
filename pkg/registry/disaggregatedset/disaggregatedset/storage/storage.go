// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the DisaggregatedSet resource and its status to the generic registry store.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/resource"
)

// New returns the storage of disaggregatedsets and of their status by name, over one store.
func New(host provider.Host) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme)
	r := resource.Resource{
		Kind:     disaggregatedset.Kind("DisaggregatedSet"),
		New:      func() runtime.Object { return &disaggregatedset.DisaggregatedSet{} },
		NewList:  func() runtime.Object { return &disaggregatedset.DisaggregatedSetList{} },
		Strategy: main, Status: strategy.NewStatusStrategy(main),
		Table: NewTable(),
	}
	served, _, err := r.Serve(host)
	return served, err
}
