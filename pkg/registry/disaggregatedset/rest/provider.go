// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the disaggregatedset.x-k8s.io group to their storage.
package rest

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/install"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	disaggregatedset "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/disaggregatedset/storage"
	rolescaler "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/rolescaler/storage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// Provider returns the group disaggregatedset.x-k8s.io.
func Provider() provider.Provider {
	return provider.Provider{
		Versions:       []schema.GroupVersion{disaggregatedsetv1.SchemeGroupVersion},
		StorageVersion: disaggregatedsetv1.SchemeGroupVersion,
		Gate:           features.DisaggregatedSet,
		Install:        install.Install,
		Resources:      []string{"disaggregatedsets", "disaggregatedsetrolescalers"},
		NewStorage: func(host provider.Host) (map[string]map[string]rest.Storage, error) {
			resources, err := disaggregatedset.New(host)
			if err != nil {
				return nil, err
			}
			scalers, err := rolescaler.New(host)
			if err != nil {
				return nil, err
			}
			maps.Copy(resources, scalers)
			return map[string]map[string]rest.Storage{disaggregatedsetv1.SchemeGroupVersion.Version: resources}, nil
		},
	}
}
