// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the leaderworkerset.x-k8s.io group to their storage.
package rest

import (
	"k8s.io/apimachinery/pkg/runtime"

	batchinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/install"
	v1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/run"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/storage"
)

// Provider returns the group leaderworkerset.x-k8s.io.
func Provider() provider.Provider {
	return provider.InOneVersion(v1.SchemeGroupVersion, provider.Provider{
		Install: func(scheme *runtime.Scheme) {
			install.Install(scheme)
			batchinstall.Install(scheme) // the requests of actions
		},
		Resources: []string{"leaderworkersets"},
		Recorded:  map[string]archive.Describe{"leaderworkersets": run.Describe},
	}, storage.New)
}
