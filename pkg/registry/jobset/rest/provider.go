// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the jobset.x-k8s.io group to their storage.
package rest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	batchinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/run"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/storage"
)

// Provider returns the group jobset.x-k8s.io.
func Provider() provider.Provider {
	return provider.InOneVersion(v1alpha2.SchemeGroupVersion, provider.Provider{
		Install: func(scheme *runtime.Scheme) {
			install.Install(scheme)
			batchinstall.Install(scheme) // the requests of actions
		},
		Resources: []string{"jobsets"},
		Recorded:  map[string]archive.Describe{"jobsets": run.Describe},
	}, func(host provider.Host) (map[string]rest.Storage, error) {
		return storage.New(host, features.JobSet(host.Gates))
	})
}
