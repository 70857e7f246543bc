// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
)

// What becomes of the children of an object whose UID cannot be read.
const (
	// childrenName only names them.
	childrenName = "name"
	// childrenRelease takes the references to the object off them, so that they run to their end.
	childrenRelease = "release"
	// childrenDelete deletes them.
	childrenDelete = "delete"
)

// unknownOwner is an object of which the store has the name but no UID that can be read. The garbage collector knows
// owners by their UIDs: it does not notice that such an object is gone until kube-controller-manager starts again.
type unknownOwner struct {
	schema.GroupResource
	namespace, name string
}

// referencesOf returns the indexes of the owner references of an object in the namespace to the owner.
func (o unknownOwner) referencesOf(object *metav1.PartialObjectMetadata) []int {
	var indexes []int
	for i := range object.OwnerReferences {
		ref := &object.OwnerReferences[i]
		version, err := schema.ParseGroupVersion(ref.APIVersion)
		if err == nil && version.Group == o.Group && strings.ToLower(ref.Kind)+"s" == o.Resource && ref.Name == o.name {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// ownChildren are the resources of our own groups that objects of a resource may own.
var ownChildren = map[string][]string{
	"sequentialjobs":    {"jobsets"},
	"disaggregatedsets": {"leaderworkersets", "disaggregatedsetrolescalers"},
}

// child is an object that names an owner.
type child struct {
	schema.GroupVersionResource
	*metav1.PartialObjectMetadata
}

func (c child) String() string { return strings.TrimSuffix(c.Resource, "s") + "/" + c.Name }

// childrenOf returns the children of an object in the main cluster, those of our own kinds first.
func (c *clients) childrenOf(ctx context.Context, owner unknownOwner) (found []child, err error) {
	served, err := c.owned(ctx)
	if err != nil {
		return nil, err
	}
	var resources []schema.GroupVersionResource
	for _, group := range apigroups.All().InEtcd() {
		for _, name := range group.Resources {
			for _, own := range ownChildren[owner.Resource] {
				if own == name {
					resources = append(resources, group.StorageVersion.WithResource(name))
				}
			}
		}
	}
	for _, s := range served {
		resources = append(resources, s.GroupVersionResource)
	}
	for _, resource := range resources {
		if found, err = c.addChildren(ctx, found, resource, owner); err != nil {
			return nil, explain(fmt.Errorf("listing the %s in namespace %s: %w", resource.Resource, owner.namespace, err))
		}
	}
	return found, nil
}

// addChildren adds the children of one resource.
func (c *clients) addChildren(ctx context.Context, found []child, resource schema.GroupVersionResource,
	owner unknownOwner) ([]child, error) {
	options := metav1.ListOptions{Limit: 500}
	for {
		list, err := c.metadata.Resource(resource).Namespace(owner.namespace).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return found, nil // the resource is not served
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if len(owner.referencesOf(&list.Items[i])) > 0 {
				found = append(found, child{resource, &list.Items[i]})
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return found, nil
		}
	}
}

// childCare does to the children of an owner what the administrator asks for.
type childCare struct {
	*clients
	streams genericiooptions.IOStreams
	owner   unknownOwner
	mode    string
	dryRun  bool
}

// run returns an error if a child could not be released or deleted. Then the owner must stay, by whose key the command finds the children.
func (c *childCare) run(ctx context.Context) error {
	found, err := c.childrenOf(ctx, c.owner)
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range found {
		did, verb := "belongs to it", c.verbFor(one)
		switch {
		case c.mode == childrenName:
		case c.dryRun:
			did = "would be " + verb + "d"
		default:
			if err := c.act(ctx, verb, one); err != nil {
				errs = append(errs, fmt.Errorf("%s in namespace %s was not %sd: %w", one, one.Namespace, verb, explain(err)))
				continue
			}
			did = "was " + verb + "d"
		}
		fmt.Fprintf(c.streams.Out, "%s in namespace %s %s\n", one, one.Namespace, did)
	}
	if c.mode == childrenName && len(found) > 0 {
		fmt.Fprint(c.streams.Out, "The UID of the object cannot be read, so the garbage collector does not notice that it is gone: what belongs "+
			"to it runs on\nuntil kube-controller-manager restarts, and is deleted then. --children=release lets it run to its end, and "+
			"--children=delete\ndeletes it now.\n")
	}
	return errors.Join(errs...)
}

// verbFor returns what happens to one child. A child that has other owners too is not deleted: it loses the reference.
func (c *childCare) verbFor(one child) string {
	if c.mode == childrenDelete && len(one.OwnerReferences) > len(c.owner.referencesOf(one.PartialObjectMetadata)) {
		return childrenRelease
	}
	return c.mode
}

// act releases or deletes one child.
func (c *childCare) act(ctx context.Context, verb string, one child) error {
	if verb == childrenRelease {
		r := &release{clients: c.clients, streams: c.streams, owners: c.owner}
		return r.one(ctx, one.GroupVersionResource, one.PartialObjectMetadata)
	}
	propagation := metav1.DeletePropagationBackground
	err := c.metadata.Resource(one.GroupVersionResource).Namespace(one.Namespace).Delete(ctx, one.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(one.UID)), PropagationPolicy: &propagation,
	})
	return utilerrors.FilterOut(err, apierrors.IsNotFound)
}
