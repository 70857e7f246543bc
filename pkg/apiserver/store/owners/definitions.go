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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

var (
	customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	// APIServices is the resource in which kube-apiserver registers groups.
	APIServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// Definition is a CustomResourceDefinition of one of our kinds with objects that the store does not have, or may not have.
type Definition struct {
	schema.GroupResource
	// HiddenBy is the APIService that routes the group away from the definition, so that the objects cannot be counted; it is empty if they
	// were counted.
	HiddenBy string
	// Lost is how many objects the store does not have, and Names are some of them, at most witness.MaxNames.
	Lost  int
	Names []string
}

// Definitions looks for the definitions of our kinds in the main cluster.
type Definitions struct {
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	// Resources are the resources that the server stores and serves.
	Resources []schema.GroupResource
	// Known returns the UIDs of all objects in the store that stay.
	Known func(ctx context.Context) (sets.Set[types.UID], error)
	// Imported returns whether objects of the resource were imported into the store.
	Imported func(ctx context.Context, resource schema.GroupResource) (bool, error)
}

// Check returns the definitions with objects that the store does not have. One that serves no version has none that anybody reaches.
func (d *Definitions) Check(ctx context.Context) ([]Definition, error) {
	var found []Definition
	for _, resource := range d.Resources {
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
	hiddenBy := ""
	for _, version := range ServedVersions(definition) {
		name := version + "." + resource.Group
		service, err := d.Dynamic.Resource(APIServices).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err // one that does not exist yet is created for the definition
		}
		if !Routed(service) {
			return d.count(ctx, resource.WithVersion(version))
		}
		hiddenBy = name
	}
	if hiddenBy == "" {
		return nil, nil
	}
	if imported, err := d.Imported(ctx, resource); imported || err != nil {
		return nil, err
	}
	return &Definition{GroupResource: resource, HiddenBy: hiddenBy}, nil
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

// count reads the objects of the definition.
func (d *Definitions) count(ctx context.Context, resource schema.GroupVersionResource) (*Definition, error) {
	known, err := d.Known(ctx)
	if err != nil {
		return nil, err
	}
	var found *Definition
	begin := func() { found = &Definition{GroupResource: resource.GroupResource()} }
	err = EachPage(ctx, d.Metadata, resource, begin, func(page []metav1.PartialObjectMetadata) {
		for i := range page {
			if known.Has(page[i].UID) {
				continue
			}
			if found.Lost++; len(found.Names) < witness.MaxNames {
				found.Names = append(found.Names, page[i].Namespace+"/"+page[i].Name)
			}
		}
	})
	if err != nil || found.Lost == 0 {
		return nil, err
	}
	return found, nil
}
