// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the batch.jobset-apiserver.io group to their storage.
package rest

import (
	"maps"

	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	podreadinessgroup "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/podreadinessgroup/storage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/run"
	sequentialjob "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/storage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// Provider returns the group batch.jobset-apiserver.io.
func Provider() provider.Provider {
	return provider.InOneVersion(v1alpha1.SchemeGroupVersion, provider.Provider{
		Install:   install.Install,
		Resources: []string{"podreadinessgroups", "sequentialjobs"},
		Recorded:  map[string]archive.Describe{"sequentialjobs": run.Describe},
	}, func(host provider.Host) (map[string]rest.Storage, error) {
		resources, err := sequentialjob.New(host, features.JobSet(host.Gates))
		if err != nil {
			return nil, err
		}
		groups, err := podreadinessgroup.New(host)
		maps.Copy(resources, groups)
		return resources, err
	})
}
