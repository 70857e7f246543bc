// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the archive.jobset-apiserver.io group to their storage.
package rest

import (
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/archive/run/storage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// Provider returns the group archive.jobset-apiserver.io. Its objects are in the archive database. The group is served while the archive
// is off, too: if it were absent, clients could not say why.
func Provider() provider.Provider {
	return provider.InOneVersion(v1alpha1.SchemeGroupVersion, provider.Provider{
		Install:   install.Install,
		Resources: []string{storage.Resource},
		Elsewhere: true,
		// The end of a namespace neither deletes runs nor waits for them.
		HiddenVerbs: []string{"delete"},
	}, func(host provider.Host) (map[string]rest.Storage, error) {
		return map[string]rest.Storage{storage.Resource: storage.New(host)}, nil
	})
}
