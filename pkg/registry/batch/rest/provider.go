// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the batch.jobset-apiserver.io group to their storage.
package rest

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	podreadinessgroup "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/podreadinessgroup/storage"
	sequentialjob "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/storage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// Provider returns the group batch.jobset-apiserver.io.
func Provider() provider.Provider {
	return provider.Provider{
		Versions:       []schema.GroupVersion{v1alpha1.SchemeGroupVersion},
		StorageVersion: v1alpha1.SchemeGroupVersion,
		Install:        install.Install,
		Resources:      []string{"podreadinessgroups", "sequentialjobs"},
		NewStorage: func(host provider.Host) (map[string]map[string]rest.Storage, error) {
			resources, err := sequentialjob.New(host, features.JobSet(host.Gates))
			if err != nil {
				return nil, err
			}
			groups, err := podreadinessgroup.New(host)
			if err != nil {
				return nil, err
			}
			maps.Copy(resources, groups)
			return map[string]map[string]rest.Storage{v1alpha1.SchemeGroupVersion.Version: resources}, nil
		},
	}
}
