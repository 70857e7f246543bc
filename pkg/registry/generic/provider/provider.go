// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider describes an API group to the server that hosts it. Everything that the server has to know of a group
// is in one value, so that no other part of the server names a group or a kind.
package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/component-base/featuregate"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// Provider is one API group.
type Provider struct {
	// Versions are the versions that are served, the preferred one first. All are of one group.
	Versions []schema.GroupVersion
	// StorageVersion is the version in which objects are stored.
	StorageVersion schema.GroupVersion
	// Elsewhere means that the objects are not in etcd: NewStorage returns storage over another store. The group is served like any other,
	// but nothing that looks at etcd knows it, quota does not count its objects, and they own no other objects.
	Elsewhere bool
	// HiddenVerbs are verbs that the resources answer, although discovery leaves them out. When a namespace ends, the cluster deletes the
	// objects of all resources for which discovery has the verb delete: objects that outlive their namespace must hide it.
	HiddenVerbs []string
	// Gate is the feature gate without which the group is not served. It is empty for none.
	Gate featuregate.Feature
	// Install adds the types of the group to a scheme, and those of other groups that its subresources take.
	Install func(*runtime.Scheme)
	// Resources are the names of the resources that store objects. Quota counts them, unless they are stored elsewhere.
	Resources []string
	// Recorded describes the runs of the objects of a resource, by the name of the resource. The archive records these runs. The function is
	// called with objects of the internal types.
	Recorded map[string]archive.Describe
	// NewStorage returns for each version the storage of every resource and subresource by name.
	NewStorage func(Host) (map[string]map[string]rest.Storage, error)
}

// InOneVersion completes a group that is served in one version only. The storage is by the names of resources and subresources.
func InOneVersion(version schema.GroupVersion, group Provider, newStorage func(Host) (map[string]rest.Storage, error)) Provider {
	group.Versions, group.StorageVersion = []schema.GroupVersion{version}, version
	group.NewStorage = func(host Host) (map[string]map[string]rest.Storage, error) {
		resources, err := newStorage(host)
		return map[string]map[string]rest.Storage{version.Version: resources}, err
	}
	return group
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
	// Neighbors finds objects of all kinds. It is nil for a server that looks for none.
	Neighbors Neighbors
	// Runs keeps the runs that have ended. It is nil while the archive is off.
	Runs archive.Store
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
	for name := range p.Recorded {
		if !slices.Contains(p.Resources, name) {
			return nil, fmt.Errorf("resource %s of %s is recorded, and not listed by its provider", name, p.Group())
		}
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

// maxNote is the longest note that the events API accepts, in bytes.
const maxNote = 1024

// Recorder records every action that changed an object, after the change was stored. It must not block.
type Recorder interface {
	Record(event Event)
}

// Event describes one action of a user.
type Event struct {
	// Regarding is the object that changed.
	Regarding corev1.ObjectReference
	// Action is the name of the subresource.
	Action string
	// Reason is the reason of the event.
	Reason string
	// Note says who asked for what, and why.
	Note string
	// Warning says that a user should look at it.
	Warning bool
}

// EventNote joins the parts of a note to one line within the limit of the API. A reason that is too long is cut: the other
// parts are short and say more.
func EventNote(head, reason, tail string) string {
	reason = strings.Join(strings.Fields(reason), " ")
	if reason == "" {
		return head + tail
	}
	head += ": "
	return head + text.TruncateWithEllipsis(reason, maxNote-len(head)-len(tail)) + tail
}

const (
	// MaxRevisions is the highest number of ControllerRevisions with one label that are read.
	MaxRevisions = 500
	// MaxRevisionBytes is the highest size of what they hold together.
	MaxRevisionBytes = 16 << 20
)

// RevisionReader reads the history of an object, which controllers keep as ControllerRevisions in the main cluster.
type RevisionReader interface {
	// List returns the ControllerRevisions of the namespace whose label has the value, in any order. It returns an error when there are more
	// than MaxRevisions, or when they hold more than MaxRevisionBytes.
	List(ctx context.Context, namespace, label, value string) ([]appsv1.ControllerRevision, error)
}

// OwnRevisions returns the revisions that the object of the UID controls.
func OwnRevisions(all []appsv1.ControllerRevision, owner types.UID) []*appsv1.ControllerRevision {
	var own []*appsv1.ControllerRevision
	for i := range all {
		if ref := metav1.GetControllerOfNoCopy(&all[i]); ref != nil && ref.UID == owner {
			own = append(own, &all[i])
		}
	}
	return own
}
