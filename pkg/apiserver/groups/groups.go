// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package groups lists the API groups of the server. Discovery, storage, encryption, quota, OpenAPI, admission and
// --runtime-config follow from the list; no other part of the server names a group or a kind.
package groups

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/component-base/featuregate"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/volumeclaims"
	batchrest "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/rest"
	disaggregatedsetrest "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/rest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	jobsetrest "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/rest"
	leaderworkersetrest "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/rest"
)

// All returns every group that the server can serve.
func All() Groups {
	claims := Plugin{Name: volumeclaims.PluginName, Register: volumeclaims.Register}
	namespaces := Plugin{Name: namespaceuid.PluginName, Register: namespaceuid.Register}
	return Groups{
		{Provider: jobsetrest.Provider(), Plugins: []Plugin{claims, namespaces}},
		{Provider: batchrest.Provider(), Plugins: []Plugin{namespaces}},
		{Provider: leaderworkersetrest.Provider(), Plugins: []Plugin{namespaces}},
		{Provider: disaggregatedsetrest.Provider(), Plugins: []Plugin{namespaces}},
	}
}

// Group is an API group, and the admission plugins for its kinds. Groups may share a plugin.
type Group struct {
	provider.Provider
	Plugins []Plugin
}

// Plugin is an admission plugin.
type Plugin struct {
	Name     string
	Register func(*admission.Plugins)
}

// Groups is a list of groups. It implements resourceconfig.GroupVersionRegistry.
type Groups []Group

// PrioritizedVersionsAllGroups returns the versions of all groups, the preferred one of each group first.
func (g Groups) PrioritizedVersionsAllGroups() []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, group := range g {
		versions = append(versions, group.Versions...)
	}
	return versions
}

// PrioritizedVersionsForGroup returns the versions of a group, the preferred one first.
func (g Groups) PrioritizedVersionsForGroup(name string) []schema.GroupVersion {
	return slices.DeleteFunc(g.PrioritizedVersionsAllGroups(), func(v schema.GroupVersion) bool { return v.Group != name })
}

// IsGroupRegistered returns whether the list has the group.
func (g Groups) IsGroupRegistered(name string) bool {
	return len(g.PrioritizedVersionsForGroup(name)) > 0
}

// IsVersionRegistered returns whether the list has the version of the group.
func (g Groups) IsVersionRegistered(version schema.GroupVersion) bool {
	return slices.Contains(g.PrioritizedVersionsAllGroups(), version)
}

// StorageVersions returns in which version the objects of each group are stored.
func (g Groups) StorageVersions() schema.GroupVersions {
	var versions schema.GroupVersions
	for _, group := range g {
		versions = append(versions, group.StorageVersion)
	}
	return versions
}

// Stored returns the resources that store objects.
func (g Groups) Stored() []schema.GroupResource {
	var resources []schema.GroupResource
	for _, group := range g {
		for _, name := range group.Resources {
			resources = append(resources, schema.GroupResource{Group: group.Group(), Resource: name})
		}
	}
	return resources
}

// HasResource returns whether a group stores objects of the resource.
func (g Groups) HasResource(group, resource string) bool {
	return slices.Contains(g.Stored(), schema.GroupResource{Group: group, Resource: resource})
}

// Plugins returns the admission plugins of all groups, each once.
func (g Groups) Plugins() []Plugin {
	var plugins []Plugin
	for _, group := range g {
		for _, plugin := range group.Plugins {
			if !slices.ContainsFunc(plugins, func(p Plugin) bool { return p.Name == plugin.Name }) {
				plugins = append(plugins, plugin)
			}
		}
	}
	return plugins
}

// Off returns the versions whose feature gate is off, with the gate. Whatever else is asked for, they are not served.
func (g Groups) Off(gates featuregate.FeatureGate) map[schema.GroupVersion]featuregate.Feature {
	off := map[schema.GroupVersion]featuregate.Feature{}
	for _, group := range g {
		for _, version := range group.Versions {
			if group.Gate != "" && !gates.Enabled(group.Gate) {
				off[version] = group.Gate
			}
		}
	}
	return off
}

// Enabled returns which resources are served by default: all, as far as their gates are on.
func (g Groups) Enabled() *serverstorage.ResourceConfig {
	config := serverstorage.NewResourceConfig()
	config.EnableVersions(g.PrioritizedVersionsAllGroups()...)
	return config
}

// Served returns the versions of which some resource is enabled.
func (g Groups) Served(config serverstorage.APIResourceConfigSource) []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, group := range g {
		for _, version := range group.Versions {
			if slices.ContainsFunc(group.Resources, func(name string) bool { return config.ResourceEnabled(version.WithResource(name)) }) {
				versions = append(versions, version)
			}
		}
	}
	return versions
}
