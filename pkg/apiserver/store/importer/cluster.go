// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
)

const (
	// pageSize is how many objects are read from the cluster at once.
	pageSize = 50
	// maxStarts is how often a list is started. One that expires in the middle starts again.
	maxStarts = 5
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// Cluster is a main cluster that serves custom resources.
type Cluster struct {
	Client dynamic.Interface
	Kinds  *Kinds
}

// Served returns the version of the resource to read from the cluster. It returns an error that says why there is none.
func (c *Cluster) Served(ctx context.Context, resource schema.GroupResource) (schema.GroupVersionResource, error) {
	none := schema.GroupVersionResource{}
	definition, err := c.Client.Resource(definitions).Get(ctx, resource.String(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return none, &Unserved{fmt.Sprintf("the main cluster has no CustomResourceDefinition %s", resource)}
	case err != nil:
		return none, err
	}
	known := c.Kinds.versionsOf(resource)
	served := owners.ServedVersions(definition)
	at := slices.IndexFunc(known, func(version string) bool { return slices.Contains(served, version) })
	if at < 0 {
		return none, fmt.Errorf("CustomResourceDefinition %s must serve version %s, but it serves %s", resource, strings.Join(known, " or "),
			strings.Join(served, ", "))
	}
	name := known[at] + "." + resource.Group
	service, err := c.Client.Resource(apiServices).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return none, err
	}
	if server, found, _ := unstructured.NestedMap(service.Object, "spec", "service"); found && server != nil {
		return none, &Unserved{fmt.Sprintf("APIService %s must be local, but Service %v/%v serves it: the objects of CustomResourceDefinition "+
			"%s cannot be read", name,
			server["namespace"], server["name"], resource)}
	}
	return resource.WithVersion(known[at]), nil
}

// Unserved says that the objects of a resource cannot be read from a custom resource definition.
type Unserved struct{ cause string }

// Error implements error.
func (u *Unserved) Error() string { return u.cause }

func (k *Kinds) versionsOf(resource schema.GroupResource) []string {
	for _, kind := range k.kinds {
		if kind.resource == resource {
			return kind.versions
		}
	}
	return nil
}

// Source returns the objects of the resources.
func (c *Cluster) Source(resources []schema.GroupVersionResource) Source {
	return func(ctx context.Context, fn func([]byte) error) error {
		for _, resource := range resources {
			objects, err := c.list(ctx, resource)
			if err != nil {
				return fmt.Errorf("listing the %s of the main cluster: %w", resource.GroupResource(), err)
			}
			for _, data := range objects {
				if err := fn(data); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// list reads all objects of a resource as they were at one time.
func (c *Cluster) list(ctx context.Context, resource schema.GroupVersionResource) ([][]byte, error) {
	for start := 1; ; start++ {
		objects, err := c.pages(ctx, resource)
		if !apierrors.IsResourceExpired(err) || start == maxStarts {
			return objects, err
		}
	}
}

func (c *Cluster) pages(ctx context.Context, resource schema.GroupVersionResource) ([][]byte, error) {
	var objects [][]byte
	bytes, options := 0, metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.Client.Resource(resource).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			data, err := page.Items[i].MarshalJSON()
			if err != nil {
				return nil, err
			}
			if bytes += len(data); bytes > 4*maxBytes {
				return nil, fmt.Errorf("the objects must have at most %d bytes in JSON: import one namespace after the other, each from a file",
					4*maxBytes)
			}
			objects = append(objects, data)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return objects, nil
		}
	}
}
