// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apigroups lists the API groups of the server. Discovery, storage, encryption, quota, OpenAPI, admission and
// --runtime-config follow from the list; no other part of the server names a group or a kind.
package apigroups

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/component-base/featuregate"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/creator"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/leaderworkerpods"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/volumeclaims"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/webhook"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	archiverest "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/archive/rest"
	batchrest "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/rest"
	disaggregatedsetrest "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/rest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	jobsetrest "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/rest"
	leaderworkersetrest "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/rest"
)

// All returns every group that the server can serve.
func All() List {
	claims := Plugin{Name: volumeclaims.PluginName, Register: volumeclaims.Register}
	namespaces := Plugin{Name: namespaceuid.PluginName, Register: namespaceuid.Register}
	creators := Plugin{Name: creator.PluginName, Register: creator.Register}
	return List{
		{Provider: jobsetrest.Provider(), Plugins: []Plugin{claims, namespaces, creators}},
		{Provider: batchrest.Provider(), Plugins: []Plugin{namespaces, creators}},
		{Provider: leaderworkersetrest.Provider(), Plugins: []Plugin{namespaces, creators}},
		{Provider: disaggregatedsetrest.Provider(), Plugins: []Plugin{namespaces, creators}},
		{Provider: archiverest.Provider()},
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

// List is a list of API groups. It implements resourceconfig.GroupVersionRegistry.
type List []Group

// PrioritizedVersionsAllGroups returns the versions of all groups, the preferred one of each group first.
func (l List) PrioritizedVersionsAllGroups() []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, group := range l {
		versions = append(versions, group.Versions...)
	}
	return versions
}

// PrioritizedVersionsForGroup returns the versions of a group, the preferred one first.
func (l List) PrioritizedVersionsForGroup(name string) []schema.GroupVersion {
	return slices.DeleteFunc(l.PrioritizedVersionsAllGroups(), func(v schema.GroupVersion) bool { return v.Group != name })
}

// IsGroupRegistered returns whether the list has the group.
func (l List) IsGroupRegistered(name string) bool {
	return len(l.PrioritizedVersionsForGroup(name)) > 0
}

// IsVersionRegistered returns whether the list has the version of the group.
func (l List) IsVersionRegistered(version schema.GroupVersion) bool {
	return slices.Contains(l.PrioritizedVersionsAllGroups(), version)
}

// InEtcd returns the groups whose objects are in etcd.
func (l List) InEtcd() List {
	return slices.DeleteFunc(slices.Clone(l), func(group Group) bool { return group.Elsewhere })
}

// StorageVersions returns in which version the objects of each group are in etcd.
func (l List) StorageVersions() schema.GroupVersions {
	var versions schema.GroupVersions
	for _, group := range l.InEtcd() {
		versions = append(versions, group.StorageVersion)
	}
	return versions
}

// Stored returns the resources whose objects are in etcd.
func (l List) Stored() []schema.GroupResource {
	var resources []schema.GroupResource
	for _, group := range l.InEtcd() {
		for _, name := range group.Resources {
			resources = append(resources, schema.GroupResource{Group: group.Group(), Resource: name})
		}
	}
	return resources
}

// HasResource returns whether a group has the resource, wherever its objects are stored.
func (l List) HasResource(name, resource string) bool {
	return slices.ContainsFunc(l, func(group Group) bool { return group.Group() == name && slices.Contains(group.Resources, resource) })
}

// RecordsNamespace returns whether the server records in objects of the resource in which namespace they were created.
func (l List) RecordsNamespace(resource schema.GroupResource) bool {
	return namespaceuid.Records(resource)
}

// Recorded returns what describes the runs of the resources whose runs the archive records.
func (l List) Recorded() map[schema.GroupResource]archive.Describe {
	recorded := map[schema.GroupResource]archive.Describe{}
	for _, group := range l {
		for name, describe := range group.Recorded {
			recorded[schema.GroupResource{Group: group.Group(), Resource: name}] = describe
		}
	}
	return recorded
}

// Plugins returns the admission plugins of all groups, each once.
func (l List) Plugins() []Plugin {
	var plugins []Plugin
	for _, group := range l {
		for _, plugin := range group.Plugins {
			if !slices.ContainsFunc(plugins, func(p Plugin) bool { return p.Name == plugin.Name }) {
				plugins = append(plugins, plugin)
			}
		}
	}
	return plugins
}

// Off returns the versions whose feature gate is off, with the gate. Whatever else is asked for, they are not served.
func (l List) Off(gates featuregate.FeatureGate) map[schema.GroupVersion]featuregate.Feature {
	off := map[schema.GroupVersion]featuregate.Feature{}
	for _, group := range l {
		for _, version := range group.Versions {
			if group.Gate != "" && !gates.Enabled(group.Gate) {
				off[version] = group.Gate
			}
		}
	}
	return off
}

// Enabled returns which resources are served by default: all, as far as their gates are on.
func (l List) Enabled() *serverstorage.ResourceConfig {
	config := serverstorage.NewResourceConfig()
	config.EnableVersions(l.PrioritizedVersionsAllGroups()...)
	return config
}

// Served returns the versions of which some resource is enabled.
func (l List) Served(config serverstorage.APIResourceConfigSource) []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, group := range l {
		for _, version := range group.Versions {
			if slices.ContainsFunc(group.Resources, func(name string) bool { return config.ResourceEnabled(version.WithResource(name)) }) {
				versions = append(versions, version)
			}
		}
	}
	return versions
}

// Absent returns the versions that are not among those which are served.
func (l List) Absent(served []schema.GroupVersion) []schema.GroupVersion {
	return slices.DeleteFunc(l.PrioritizedVersionsAllGroups(), func(v schema.GroupVersion) bool { return slices.Contains(served, v) })
}

// AbsentResources returns the resources that are switched off.
func (l List) AbsentResources(config serverstorage.APIResourceConfigSource) []schema.GroupVersionResource {
	var absent []schema.GroupVersionResource
	for _, group := range l {
		for _, version := range group.Versions {
			for _, name := range group.Resources {
				if resource := version.WithResource(name); !config.ResourceEnabled(resource) {
					absent = append(absent, resource)
				}
			}
		}
	}
	return absent
}

// PodsPath is where kube-apiserver sends pods of LeaderWorkerSets that are being created.
const PodsPath = "/mutate--v1-pod"

// PodsWebhook is the name of the MutatingWebhookConfiguration that makes kube-apiserver send them.
const PodsWebhook = "jobset-apiserver-pods"

// Webhooks returns what the server answers when kube-apiserver asks about objects of its own. They are served whatever
// resources are: pods of sets are created also while the sets themselves are not served.
func Webhooks() []webhook.Webhook {
	return []webhook.Webhook{{Path: PodsPath, Mutate: leaderworkerpods.Mutate}}
}
