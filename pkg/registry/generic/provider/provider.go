// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider describes an API group to the server that hosts it. Everything that the server has to know of a group
// is in one value, so that no other part of the server names a group or a kind.
package provider

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/component-base/featuregate"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/neighbors"
)

// Provider is one API group.
type Provider struct {
	// Versions are the versions that are served, the preferred one first. All are of one group.
	Versions []schema.GroupVersion
	// StorageVersion is the version in which objects are stored.
	StorageVersion schema.GroupVersion
	// Gate is the feature gate without which the group is not served. It is empty for none.
	Gate featuregate.Feature
	// Install adds the types of the group to a scheme, and those of other groups that its subresources take.
	Install func(*runtime.Scheme)
	// Resources are the names of the resources that store objects. Quota counts them.
	Resources []string
	// NewStorage returns for each version the storage of every resource and subresource by name.
	NewStorage func(Host) (map[string]map[string]rest.Storage, error)
}

// Host is what a server gives to its groups.
type Host struct {
	// Getter says how to store a resource.
	Getter generic.RESTOptionsGetter
	// Scheme holds the types of all groups.
	Scheme *runtime.Scheme
	// Gates are the feature gates.
	Gates featuregate.FeatureGate
	// Recorder records actions of users.
	Recorder Recorder
	// Revisions reads the history of objects.
	Revisions RevisionReader
	// Neighbors finds objects whose children would have the same names. It is nil for a server that warns of none.
	Neighbors *neighbors.Neighbors
	// Now is the clock of actions and of durations.
	Now func() time.Time
	// Admission is what requests pass before they are stored: all plugins, with the webhooks and policies of the cluster. Actions that
	// edit an object pass it. It is nil for a server without admission.
	Admission admission.Interface
	// Objects is what admission needs to know of the types.
	Objects admission.ObjectInterfaces
}

// Group is the name of the group.
func (p Provider) Group() string { return p.StorageVersion.Group }

// Storage builds the storage of every version, and checks that it holds the resources that the provider lists.
func (p Provider) Storage(host Host) (map[string]map[string]rest.Storage, error) {
	storage, err := p.NewStorage(host)
	if err != nil {
		return nil, fmt.Errorf("building the storage of %s: %w", p.Group(), err)
	}
	for _, version := range p.Versions {
		for name := range storage[version.Version] {
			if !strings.Contains(name, "/") && !slices.Contains(p.Resources, name) {
				return nil, fmt.Errorf("resource %s of %s is not listed by its provider", name, version)
			}
		}
		for _, name := range p.Resources {
			if storage[version.Version][name] == nil {
				return nil, fmt.Errorf("resource %s of %s has no storage", name, version)
			}
		}
	}
	return storage, nil
}
