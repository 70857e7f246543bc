// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest maps the resources of the jobset.x-k8s.io group to their storage.
package rest

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/storage"
)

// Options are the states of the feature gates that the API depends on.
type Options struct {
	// InPlaceRestart is the gate of the same name.
	InPlaceRestart bool
	// RestartJob is the gate of the same name.
	RestartJob bool
	// ElasticJobSet is the gate of the same name.
	ElasticJobSet bool
	// ActiveDeadline is the gate JobSetActiveDeadlineSeconds.
	ActiveDeadline bool
	// ExecutionAttempts is the gate ExecutionAttemptsTracking.
	ExecutionAttempts bool
	// MutablePodResources is the gate MutablePodResourcesForSuspendedJobSets.
	MutablePodResources bool
}

// NewStorage returns the storage of every resource of v1alpha2 by its name. The typer is a scheme that holds the group.
// The recorder is told of actions of users.
func NewStorage(getter generic.RESTOptionsGetter, typer runtime.ObjectTyper, opts Options, recorder storage.Recorder) (map[string]rest.Storage, error) {
	return storage.New(getter, typer, jobset.Gates(opts), time.Now, recorder)
}
