// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the LeaderWorkerSet resource and its subresources to the generic registry store.
package storage

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/collisions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/scale"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/status"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset"
)

// New returns the storage of leaderworkersets and of their subresources by name, over one store. Lists and watches can select by the
// name and the namespace, as those of a custom resource.
func New(host provider.Host) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme, host.Now)
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &leaderworkerset.LeaderWorkerSet{} },
		NewListFunc:               func() runtime.Object { return &leaderworkerset.LeaderWorkerSetList{} },
		DefaultQualifiedResource:  leaderworkerset.Resource("leaderworkersets"),
		SingularQualifiedResource: leaderworkerset.Resource("leaderworkerset"),
		CreateStrategy:            bounds.CreateStrategy{RESTCreateStrategy: main},
		UpdateStrategy:            bounds.UpdateStrategy{RESTUpdateStrategy: main},
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            table.Convertor[*leaderworkerset.LeaderWorkerSet]{Columns: columns, Row: row},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: host.Getter}); err != nil {
		return nil, fmt.Errorf("completing the store of leaderworkersets: %w", err)
	}
	host.Neighbors.Serve(store.DefaultQualifiedResource, store.Get)
	store.BeginCreate = host.Neighbors.BeginCreate(collisions.Find)
	scaled := *store
	scaled.UpdateStrategy = bounds.UpdateStrategy{RESTUpdateStrategy: strategy.NewScaleStrategy(main)}
	served := map[string]rest.Storage{
		"leaderworkersets":        bounds.NewStore(store, leaderworkerset.Kind("LeaderWorkerSet"), "lws"),
		"leaderworkersets/status": status.New(store, strategy.NewStatusStrategy(main)),
		"leaderworkersets/scale":  scale.New(&scaled, scaleKind),
	}
	target := action.NewTarget("LeaderWorkerSet", store, strategy.NewActionStrategy(main), host)
	for name, action := range actionsOn(target, host.Revisions) {
		served["leaderworkersets/"+name] = action
	}
	return served, nil
}
