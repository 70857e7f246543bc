// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/routing"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
)

// applyRouting moves clients to other servers when this one ends or has lost its store, and ends watches of groups that have been given to
// another server, until the context ends.
func (r *run) applyRouting(ctx context.Context, config *apiserver.Config, main *mainapi.Clients) {
	lost := r.lostStore()
	config.Filters.Leaving = routing.NewLeaving(ctx, config.Generic.ShutdownDelayDuration, lost).Filter
	watches := routing.New(func(ctx context.Context, version schema.GroupVersion) (bool, error) {
		service, err := apiServiceOf(ctx, main, version)
		return service != nil && owners.Routed(service), err
	}, lost)
	config.Filters.Routing = watches.Filter
	go watches.Run(ctx)
}

// apiServiceOf reads the APIService of a version. Both results are nil if there is none.
func apiServiceOf(ctx context.Context, main *mainapi.Clients, version schema.GroupVersion) (*unstructured.Unstructured, error) {
	service, err := main.Dynamic.Resource(owners.APIServices).Get(ctx, version.Version+"."+version.Group, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return service, nil
}
