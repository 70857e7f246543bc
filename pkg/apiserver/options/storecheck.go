// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

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
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/importer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
)

// newStoreCheck returns what keeps the server from answering for the wrong store, or nil if that is switched off.
func (o *Options) newStoreCheck(config *apiserver.Config, main *clients) (*storecheck.Guard, error) {
	if !o.Storage.Witness {
		return nil, nil
	}
	meta, err := metadata.NewForConfig(main.config)
	if err != nil {
		return nil, wrapFlagError("kubeconfig", err, "give a valid kubeconfig for the main cluster")
	}
	dynamics, err := dynamic.NewForConfig(main.config)
	if err != nil {
		return nil, wrapFlagError("kubeconfig", err, "give a valid kubeconfig for the main cluster")
	}
	checker := &owners.Checker{Metadata: meta, Discovery: main.kube.Discovery(), Groups: sets.New[string]()}
	definitions := &owners.Definitions{Dynamic: dynamics, Metadata: meta}
	served := servedVersions(config)
	for _, version := range served {
		checker.Groups.Insert(version.Group)
	}
	for _, resource := range config.APIGroups.Stored() {
		if slices.ContainsFunc(served, func(version schema.GroupVersion) bool { return version.Group == resource.Group }) {
			definitions.Resources = append(definitions.Resources, resource)
		}
	}
	stored := o.Recommended.Etcd.StorageConfig
	guard, err := storecheck.New(storecheck.Config{
		Transport: stored.Transport, Prefix: stored.Prefix, Main: main.kube, Owners: checker.Check, Definitions: definitions.Check,
		Recorder: config.Recorder,
		Version:  config.Generic.EffectiveVersion.Info().GitVersion,
	})
	if err != nil {
		return nil, wrapFlagError("etcd-servers", err, "correct the addresses and certificates of etcd")
	}
	checker.Known = func(ctx context.Context) (sets.Set[types.UID], error) {
		resources, err := storedResources(config)
		if err != nil {
			return nil, err
		}
		return guard.Objects(ctx, resources, checker.Groups)
	}
	definitions.Known = checker.Known
	definitions.Imported = func(ctx context.Context, resource schema.GroupResource) (bool, error) {
		return guard.Has(ctx, path.Join(importer.Marks, resource.Group, resource.Resource))
	}
	return guard, nil
}

// servedVersions returns the versions that the server serves. The garbage collector does not ask for owners of groups
// that are switched off.
func servedVersions(config *apiserver.Config) []schema.GroupVersion {
	resources := config.Generic.MergedResourceConfig
	if resources == nil {
		resources = config.APIGroups.Enabled()
	}
	off := config.APIGroups.Off(config.Gates)
	return slices.DeleteFunc(config.APIGroups.Served(resources), func(version schema.GroupVersion) bool {
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
