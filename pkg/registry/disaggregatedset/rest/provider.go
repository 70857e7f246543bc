// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the disaggregatedset.x-k8s.io group to their storage.
package rest

import (
	"maps"

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
	return provider.InOneVersion(disaggregatedsetv1.SchemeGroupVersion, provider.Provider{
		Gate:      features.DisaggregatedSet,
		Install:   install.Install,
		Resources: []string{"disaggregatedsets", "disaggregatedsetrolescalers"},
	}, func(host provider.Host) (map[string]rest.Storage, error) {
		resources, err := disaggregatedset.New(host)
		if err != nil {
			return nil, err
		}
		scalers, err := rolescaler.New(host)
		maps.Copy(resources, scalers)
		return resources, err
	})
}
