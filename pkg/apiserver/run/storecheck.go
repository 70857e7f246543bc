// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/importer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// newStoreCheck returns what keeps the server from answering for the wrong store, or nil if that is switched off.
func (r *run) newStoreCheck(config *apiserver.Config, store *etcd.Server, main *mainapi.Clients) (*storecheck.Guard, error) {
	if !r.Storage.Witness {
		return nil, nil
	}
	meta, err := metadata.NewForConfig(main.Config)
	if err != nil {
		return nil, flagerror.Wrap("kubeconfig", err, "give a valid kubeconfig for the main cluster")
	}
	dynamics, err := dynamic.NewForConfig(main.Config)
	if err != nil {
		return nil, flagerror.Wrap("kubeconfig", err, "give a valid kubeconfig for the main cluster")
	}
	checker := &owners.Checker{Metadata: meta, Discovery: main.Kube.Discovery()}
	definitions := &owners.Definitions{Dynamic: dynamics, Metadata: meta}
	served, groups := servedVersions(config), sets.New[string]()
	for _, version := range served {
		groups.Insert(version.Group)
	}
	for _, resource := range config.APIGroups.Stored() {
		if groups.Has(resource.Group) {
			definitions.Resources = append(definitions.Resources, resource)
		}
	}
	stored := r.Recommended.Etcd.StorageConfig
	var cluster *witness.Cluster
	var members func() []witness.Member
	if store != nil {
		cluster, members = witness.NewCluster(store.ClusterID()), store.Members
	}
	guard, err := storecheck.New(storecheck.Config{
		Transport: r.guardTransport(), Prefix: stored.Prefix, Main: main.Kube, Routes: routesOf(main, served),
		Owners: checker.Check, Definitions: definitions.Check, Recorder: config.Recorder,
		Version: config.Generic.EffectiveVersion.Info().GitVersion, Cluster: cluster, Members: members,
	})
	if err != nil {
		return nil, flagerror.Wrap("etcd-servers", err, "correct the addresses and certificates of etcd")
	}
	checker.Known = func(ctx context.Context) (sets.Set[types.UID], error) {
		resources, err := storedResources(config)
		if err != nil {
			return nil, err
		}
		return guard.Objects(ctx, resources, groups)
	}
	definitions.Imported = func(ctx context.Context, resource schema.GroupResource) (bool, error) {
		return guard.Has(ctx, path.Join(importer.Marks, resource.Group, resource.Resource))
	}
	guard.Created = func(ctx context.Context, group string) (bool, error) {
		return created(ctx, config, group, guard.Has, definitions.Imported)
	}
	return guard, nil
}

// routesOf returns what reads who answers for the groups of versions. The first version of a group decides.
func routesOf(main *mainapi.Clients, versions []schema.GroupVersion) func(context.Context) (map[string]storecheck.Route, error) {
	return func(ctx context.Context) (map[string]storecheck.Route, error) {
		routes := map[string]storecheck.Route{}
		for _, version := range versions {
			if _, known := routes[version.Group]; known {
				continue
			}
			service, err := apiServiceOf(ctx, main, version)
			if err != nil {
				return nil, fmt.Errorf("reading the APIService of %s in the main cluster: %w", version, err)
			}
			route := storecheck.Route{}
			if service != nil {
				route = storecheck.Route{UID: service.GetUID(), Version: service.GetResourceVersion(), Elsewhere: !owners.Routed(service)}
			}
			routes[version.Group] = route
		}
		return routes, nil
	}
}

// created returns whether the store has objects of a group, none of which were imported.
func created(ctx context.Context, config *apiserver.Config, group string, has func(context.Context, string) (bool, error),
	imported func(context.Context, schema.GroupResource) (bool, error)) (bool, error) {
	any := false
	for _, resource := range config.APIGroups.Stored() {
		if resource.Group != group {
			continue
		}
		if imported, err := imported(ctx, resource); imported || err != nil {
			return false, err
		}
		options, err := config.Generic.RESTOptionsGetter.GetRESTOptions(resource, nil)
		if err != nil {
			return false, fmt.Errorf("looking for the objects of %s: %w", resource, err)
		}
		found, err := has(ctx, options.ResourcePrefix)
		if err != nil {
			return false, err
		}
		any = any || found
	}
	return any, nil
}

// servedVersions returns the versions that the server serves from its store. The garbage collector does not ask for owners of groups
// that are switched off, and objects that are stored elsewhere are no owners.
func servedVersions(config *apiserver.Config) []schema.GroupVersion {
	resources := config.Generic.MergedResourceConfig
	if resources == nil {
		resources = config.APIGroups.Enabled()
	}
	off := config.APIGroups.Off(config.Gates)
	return slices.DeleteFunc(config.APIGroups.InEtcd().Served(resources), func(version schema.GroupVersion) bool {
		_, gated := off[version]
		return gated
	})
}

// storedResources returns where the objects of all groups are, also of those that are switched off.
func storedResources(config *apiserver.Config) ([]storecheck.Resource, error) {
	var resources []storecheck.Resource
	for _, resource := range config.APIGroups.Stored() {
		options, err := config.Generic.RESTOptionsGetter.GetRESTOptions(resource, nil)
		if err != nil {
			return nil, fmt.Errorf("looking for the objects of %s: %w", resource, err)
		}
		resources = append(resources, storecheck.Resource{Prefix: options.ResourcePrefix, Transformer: options.StorageConfig.Transformer})
	}
	return resources, nil
}
