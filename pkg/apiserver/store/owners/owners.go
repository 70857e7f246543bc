// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package owners finds objects of the main cluster whose owners the store does not know. The garbage collector deletes them as soon as a
// server answers for the store. It also finds objects of our kinds that a CustomResourceDefinition serves, whose children they are.
package owners

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	// tolerated is how many objects without an owner, and without pods or data, are no reason to refuse a store that was served before:
	// those of a deletion in the background.
	tolerated = 10
	// toleratedShare is one of how many objects may be without an owner when there are many.
	toleratedShare = 100
	// maxUID is the length of the longest UID that is kept. Those of this server have 36 characters; users can write any into a Job.
	maxUID = 128
)

// Count is what the check has found of one resource.
type Count struct {
	Resource
	// Owned is how many objects have an owner of our kinds, and Lost how many of them an owner that the store does not know. Objects that are
	// being deleted do not count: they cannot be kept.
	Owned, Lost int
	// Names are some of the lost ones as <namespace>/<name>, at most witness.MaxJobs.
	Names []string
}

// Report is what the check has found.
type Report struct {
	// Counts has the resources with owned objects, in the order of Resources.
	Counts []Count
	// Owners are the UIDs of the lost owners, sorted and without duplicates; those beyond witness.MaxLostOwners are left out.
	Owners []types.UID
	// More says that owners were left out.
	More bool
}

// Owned returns how many objects have an owner of our kinds.
func (r Report) Owned() (total int) {
	for _, count := range r.Counts {
		total += count.Owned
	}
	return total
}

// Lost returns how many objects have an owner that the store does not know.
func (r Report) Lost() (total int) {
	for _, count := range r.Counts {
		total += count.Lost
	}
	return total
}

// Tolerable returns whether so little is lost that the store can be the right one: nothing that has pods or data, and at most 10 other
// objects, or 1 % of the owned ones. At a first start, nothing is tolerable.
func (r Report) Tolerable() bool {
	return !r.Runs() && r.Lost() <= max(tolerated, r.Owned()/toleratedShare)
}

// Runs returns whether an object is lost that a controller cannot create again as it was: one with pods or data.
func (r Report) Runs() bool {
	return slices.ContainsFunc(r.Counts, func(count Count) bool { return count.Lost > 0 && count.Runs })
}

// Losses returns what would be deleted, and the names of Jobs.
func (r Report) Losses() (losses witness.Losses, jobs []string) {
	for _, count := range r.Counts {
		losses.Add(witness.Loss{Resource: count.String(), Kind: count.Kind, Count: count.Lost,
			Names: count.Names[:min(len(count.Names), witness.MaxNames)]})
		if count.Kind == "Job" {
			jobs = count.Names
		}
	}
	return losses, jobs
}

// Checker compares the objects of the main cluster with the store.
type Checker struct {
	// Metadata reaches the main cluster, where it lists Resources, and Discovery says which of them there are.
	Metadata  metadata.Interface
	Discovery discovery.DiscoveryInterface
	// Known returns the UIDs of all objects in the store that stay.
	Known func(ctx context.Context) (sets.Set[types.UID], error)
}

// Check compares the objects that have an owner of one of the groups. It reads the metadata of all objects, in pages, and keeps only the
// UIDs of lost owners and some names.
func (c *Checker) Check(ctx context.Context, groups sets.Set[string]) (Report, error) {
	return check{c, groups}.run(ctx)
}

// check is one comparison.
type check struct {
	*Checker
	groups sets.Set[string]
}

func (c check) run(ctx context.Context) (Report, error) {
	known, err := c.known(ctx)
	if err != nil {
		return Report{}, err
	}
	resources, err := ServedBy(ctx, c.Discovery)
	if err != nil {
		return Report{}, err
	}
	found, lost := make([]*tally, len(resources)), 0
	for i, resource := range resources {
		if found[i], err = c.count(ctx, resource, known); err != nil {
			return Report{}, err
		}
		lost += len(found[i].lost)
	}
	if lost > 0 {
		// Another server may have stored an owner after the first list, and the controller may have created its children.
		if known, err = c.known(ctx); err != nil {
			return Report{}, err
		}
		for _, t := range found {
			t.forget(known)
		}
	}
	return report(found), nil
}

func (c *Checker) known(ctx context.Context) (sets.Set[types.UID], error) {
	known, err := c.Known(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the objects in the store: %w", err)
	}
	return known, nil
}

// count reads all objects of a resource.
func (c check) count(ctx context.Context, resource Served, known sets.Set[types.UID]) (*tally, error) {
	var found *tally
	begin := func() { found = &tally{resource: resource.Resource, lost: map[types.UID]int{}} }
	err := EachPage(ctx, c.Metadata, resource.GroupVersionResource, begin, func(page []metav1.PartialObjectMetadata) {
		for i := range page {
			if owner := c.ownerOf(&page[i]); owner != "" && page[i].DeletionTimestamp == nil && !c.unread(&page[i], known) {
				found.add(&page[i], owner, known)
			}
		}
	})
	return found, err
}

// ownerOf returns the UID of the controller of the object if its API group is one of the groups. Of an object without a controller, any
// owner counts.
func (c check) ownerOf(object *metav1.PartialObjectMetadata) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return c.uidOf(owner)
	}
	for i := range object.OwnerReferences {
		if uid := c.uidOf(&object.OwnerReferences[i]); uid != "" {
			return uid
		}
	}
	return ""
}

func (c check) uidOf(owner *metav1.OwnerReference) types.UID {
	if version, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || !c.groups.Has(version.Group) {
		return ""
	}
	return owner.UID
}

// Unread stands for the UID of an object in the store whose UID cannot be read.
func Unread(namespace, name string) types.UID {
	return types.UID("unreadable:" + namespace + "/" + name)
}

// unread returns whether an owner of our kinds may be an object whose UID cannot be read. Unknown is not lost. The garbage
// collector keeps an object as long as it has one owner that exists, so that any owner counts.
func (c check) unread(object *metav1.PartialObjectMetadata, known sets.Set[types.UID]) bool {
	return slices.ContainsFunc(object.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return c.uidOf(&owner) != "" && known.Has(Unread(object.Namespace, owner.Name))
	})
}

// maxWrites is how often a list is written when others write too.
const maxWrites = 5

// Publish writes the list of lost owners to the main cluster, for `store release-orphans`. It does not write a list that is there.
func Publish(ctx context.Context, client corev1client.ConfigMapsGetter, list witness.LostOwners) error {
	var err error
	for range maxWrites {
		if err = publish(ctx, client.ConfigMaps(witness.Namespace), list); err == nil || !apierrors.IsConflict(err) &&
			!apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("writing the list of lost owners to ConfigMap %s/%s: %w", witness.Namespace, witness.LostOwnersName, err)
	}
	return nil
}

func publish(ctx context.Context, client corev1client.ConfigMapInterface, list witness.LostOwners) error {
	stored, err := client.Get(ctx, witness.LostOwnersName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.LostOwnersName}}
		list.Write(created)
		_, err = client.Create(ctx, created, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	next := stored.DeepCopy()
	list.Write(next)
	if equality.Semantic.DeepEqual(stored, next) {
		return nil
	}
	_, err = client.Update(ctx, next, metav1.UpdateOptions{})
	return err
}
