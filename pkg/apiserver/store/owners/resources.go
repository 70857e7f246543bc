// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// Resource is a resource of the main cluster whose objects can have owners of our kinds.
type Resource struct {
	schema.GroupResource
	Kind string
	// Version is the version of a resource which every cluster serves. It is empty for others, which are looked for.
	Version string
	// Runs says that the objects have pods or data, which a new object does not bring back.
	Runs bool
}

// Resources are all of them: what our controllers create, and what Kueue creates for our kinds. Those with running pods
// come first. What such an object owns itself, like pods, worker StatefulSets or EndpointSlices, goes and stays with
// it. Children of a kind of our own, like the LeaderWorkerSets of a DisaggregatedSet, are in the store: see
// storecheck.Guard.Objects.
var Resources = []Resource{
	{schema.GroupResource{Group: "apps", Resource: "statefulsets"}, "StatefulSet", "v1", true},
	{schema.GroupResource{Group: "batch", Resource: "jobs"}, "Job", "v1", true},
	{schema.GroupResource{Resource: "persistentvolumeclaims"}, "PersistentVolumeClaim", "v1", true},
	{schema.GroupResource{Resource: "services"}, "Service", "v1", false},
	{schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, "ControllerRevision", "v1", false},
	{schema.GroupResource{Group: "scheduling.k8s.io", Resource: "podgroups"}, "PodGroup", "", false},
	{schema.GroupResource{Group: "scheduling.k8s.io", Resource: "workloads"}, "Workload", "", false},
	{schema.GroupResource{Group: "scheduling.volcano.sh", Resource: "podgroups"}, "PodGroup", "", false},
	{schema.GroupResource{Group: "scheduling.x-k8s.io", Resource: "podgroups"}, "PodGroup", "", false},
	{schema.GroupResource{Group: "kueue.x-k8s.io", Resource: "workloads"}, "Workload", "", false},
}

// Served is a resource in a version that the cluster serves.
type Served struct {
	Resource
	schema.GroupVersionResource
}

// errIncomplete: a cluster without apps has not said all.
var errIncomplete = errors.New("looking for the API groups of the main cluster: the list must have the group apps, but does not: let " +
	"the user read /apis")

// ServedBy returns the resources that a cluster serves. It returns an error unless the cluster has answered for all
// groups: what is not known must not count as none.
func ServedBy(ctx context.Context, client discovery.DiscoveryInterface) ([]Served, error) {
	if aggregated, ok := client.(*discovery.DiscoveryClient); ok {
		client = aggregated.WithLegacy() // the aggregated form leaves out what a server behind kube-apiserver has not answered
	}
	legacy := discovery.ToDiscoveryInterfaceWithContext(client)
	list, err := legacy.ServerGroupsWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for the API groups of the main cluster: %w", err)
	}
	groups := map[string]metav1.APIGroup{}
	for _, group := range list.Groups {
		groups[group.Name] = group
	}
	if _, found := groups["apps"]; !found {
		return nil, errIncomplete
	}
	var served []Served
	for _, resource := range Resources {
		if resource.Version != "" {
			served = append(served, Served{resource, resource.WithVersion(resource.Version)})
			continue
		}
		for _, version := range groups[resource.Group].Versions {
			found, err := has(ctx, legacy, version.GroupVersion, resource.GroupResource.Resource)
			if err != nil {
				return nil, fmt.Errorf("looking for the resources of %s in the main cluster: %w", version.GroupVersion, err)
			}
			if found {
				served = append(served, Served{resource, resource.WithVersion(version.Version)})
				break
			}
		}
	}
	return served, nil
}

func has(ctx context.Context, client discovery.DiscoveryInterfaceWithContext, version, resource string) (bool, error) {
	list, err := client.ServerResourcesForGroupVersionWithContext(ctx, version)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }), nil
}

const (
	// pageSize is how many objects are read at once.
	pageSize = 500
	// maxStarts is how often a list is started. One that expires in the middle starts again.
	maxStarts = 5
)

// EachPage reads the metadata of all objects of a resource and calls fn with each page. It calls begin before the first page, and again
// when the list has expired in the middle and starts from the beginning.
func EachPage(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, begin func(),
	fn func([]metav1.PartialObjectMetadata)) error {
	return EachPageIn(ctx, client, resource, metav1.NamespaceAll, begin, fn)
}

// EachPageIn does the same for one namespace.
func EachPageIn(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, namespace string, begin func(),
	fn func([]metav1.PartialObjectMetadata)) error {
	objects := client.Resource(resource).Namespace(namespace)
	for start := 1; ; start++ {
		begin()
		err := list(ctx, objects, fn)
		if err == nil {
			return nil
		}
		if !apierrors.IsResourceExpired(err) || start == maxStarts {
			return fmt.Errorf("listing the %s of the main cluster: %w", resource.Resource, err)
		}
	}
}

func list(ctx context.Context, objects metadata.ResourceInterface, fn func([]metav1.PartialObjectMetadata)) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := objects.List(ctx, options)
		if err != nil {
			return err
		}
		fn(list.Items)
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}
