// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

var (
	customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	// APIServices is the resource in which kube-apiserver registers groups.
	APIServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// Definition is a CustomResourceDefinition of one of our kinds that has objects which are not in the store, or may have some.
type Definition struct {
	schema.GroupResource
	// HiddenBy is the APIService that routes the group away from the definition, so that its objects cannot be looked for; it is empty
	// if there are some.
	HiddenBy string
}

// Definitions looks for the definitions of our kinds in the main cluster.
type Definitions struct {
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	// Resources are the resources that the server stores and serves.
	Resources []schema.GroupResource
	// Imported returns whether objects of the resource were imported into the store.
	Imported func(ctx context.Context, resource schema.GroupResource) (bool, error)
}

// Check returns the definitions of some groups whose objects are not in the store. One that serves no version has none that a client
// reaches. Of a definition whose objects were imported, those that were not are children without a known owner: see Checker.
func (d *Definitions) Check(ctx context.Context, groups sets.Set[string]) ([]Definition, error) {
	var found []Definition
	for _, resource := range d.Resources {
		if !groups.Has(resource.Group) {
			continue
		}
		definition, err := d.check(ctx, resource)
		if err != nil {
			return nil, fmt.Errorf("looking for objects of CustomResourceDefinition %s: %w", resource, err)
		}
		if definition != nil {
			found = append(found, *definition)
		}
	}
	return found, nil
}

func (d *Definitions) check(ctx context.Context, resource schema.GroupResource) (*Definition, error) {
	definition, err := d.Dynamic.Resource(customResourceDefinitions).Get(ctx, resource.String(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	versions := ServedVersions(definition)
	if len(versions) == 0 {
		return nil, nil
	}
	if imported, err := d.Imported(ctx, resource); imported || err != nil {
		return nil, err
	}
	hiddenBy := ""
	for _, version := range versions {
		name := version + "." + resource.Group
		service, err := d.Dynamic.Resource(APIServices).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err // one that does not exist yet is created for the definition
		}
		if !Routed(service) {
			return d.any(ctx, resource.WithVersion(version))
		}
		hiddenBy = name
	}
	return &Definition{GroupResource: resource, HiddenBy: hiddenBy}, nil
}

// any returns the definition if it has an object.
func (d *Definitions) any(ctx context.Context, resource schema.GroupVersionResource) (*Definition, error) {
	list, err := d.Metadata.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &Definition{GroupResource: resource.GroupResource()}, nil
}

// Routed returns whether another server than kube-apiserver answers for the group.
func Routed(service *unstructured.Unstructured) bool {
	server, found, _ := unstructured.NestedMap(service.Object, "spec", "service")
	return found && server != nil
}

// ServedVersions returns the versions that a CustomResourceDefinition serves.
func ServedVersions(definition *unstructured.Unstructured) []string {
	var served []string
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		if v, ok := version.(map[string]any); ok && v["served"] == true {
			served = append(served, fmt.Sprint(v["name"]))
		}
	}
	return served
}
