// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the jobset.x-k8s.io group to their storage.
package rest

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/storage"
)

// NewStorage returns the storage of every resource of v1alpha2 by its name. The typer is a scheme that holds the group.
// The recorder is told of actions of users.
func NewStorage(getter generic.RESTOptionsGetter, typer runtime.ObjectTyper, gates gates.Gates, recorder storage.Recorder) (map[string]rest.Storage, error) {
	return storage.New(getter, typer, gates, time.Now, recorder)
}
