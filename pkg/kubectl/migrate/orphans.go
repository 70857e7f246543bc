// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/pager"
)

const (
	// orphaned is the label of an object whose owner gets another UID, while it does not refer to its owner: the garbage collector
	// would delete it at the moment in which no object has the UID.
	orphaned = "migration.jobset-apiserver.io/orphaned"
	// ownersKey is the annotation with its owner references.
	ownersKey = "migration.jobset-apiserver.io/owner-references"
)

// child is an object of any resource.
type child struct {
	resource schema.GroupVersionResource
	meta     metav1.PartialObjectMetadata
}

// children calls a function for all objects of all namespaced resources that may have owners, in parallel. Resources of groups that
// move are left out: their objects are written back with the right owners, and writes of them are refused.
func (m *mover) children(ctx context.Context, opts metav1.ListOptions, found func(context.Context, child) error) error {
	resources, err := discovery.ServerPreferredNamespacedResources(m.discovery)
	if err != nil {
		return fmt.Errorf("which resources does the cluster have? %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelWrites)
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "patch", "delete"}}, resources) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		if slices.Contains(m.groups(), version.Group) {
			continue
		}
		for _, r := range list.APIResources {
			if r.Name == "events" {
				continue
			}
			resource := version.WithResource(r.Name)
			group.Go(func() error {
				pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtimeObject, error) {
					return m.metadata.Resource(resource).List(ctx, opts)
				})
				err := pages.EachListItem(ctx, opts, func(item runtimeObject) error {
					object, ok := item.(*metav1.PartialObjectMetadata)
					if !ok {
						return fmt.Errorf("an item of a list is a %T", item)
					}
					return found(ctx, child{resource, *object})
				})
				if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
					return nil
				}
				if err != nil {
					return fmt.Errorf("looking for objects with owners among the %s: %w", resource.GroupResource(), err)
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// orphan takes the references to owners that get another UID away from all objects. The annotation of each keeps them.
func (m *mover) orphan(ctx context.Context, owners sets.Set[types.UID]) error {
	if owners.Len() == 0 {
		return nil
	}
	return m.children(ctx, metav1.ListOptions{}, func(ctx context.Context, c child) error {
		if !slices.ContainsFunc(c.meta.OwnerReferences, func(r metav1.OwnerReference) bool { return owners.Has(r.UID) }) {
			return nil
		}
		kept, err := json.Marshal(c.meta.OwnerReferences)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(c.meta.OwnerReferences), func(r metav1.OwnerReference) bool { return owners.Has(r.UID) })
		return m.patch(ctx, c, map[string]any{
			"ownerReferences": left,
			"labels":          map[string]any{orphaned: "true"},
			"annotations":     map[string]any{ownersKey: string(kept)},
		})
	})
}

// adopt gives objects their owners back, with the UIDs that these have in the CustomResourceDefinition.
func (m *mover) adopt(ctx context.Context, _ *StepRecord) error { return m.restoreOwners(ctx, m.renew) }

// readopt gives objects their owners back as they were.
func (m *mover) readopt(ctx context.Context, _ *StepRecord) error {
	return m.restoreOwners(ctx, func(context.Context, string, *metav1.OwnerReference) error { return nil })
}

func (m *mover) restoreOwners(ctx context.Context, renew func(context.Context, string, *metav1.OwnerReference) error) error {
	return m.children(ctx, metav1.ListOptions{LabelSelector: orphaned}, func(ctx context.Context, c child) error {
		if c.meta.Annotations[ownersKey] == "" {
			return nil // its label is copied from another object, as EndpointSlices copy those of Services
		}
		var owners []metav1.OwnerReference
		if err := json.Unmarshal([]byte(c.meta.Annotations[ownersKey]), &owners); err != nil {
			return fmt.Errorf("%s %s/%s: annotation %s: %w", c.resource.Resource, c.meta.Namespace, c.meta.Name, ownersKey, err)
		}
		for i := range owners {
			if err := renew(ctx, c.meta.Namespace, &owners[i]); err != nil {
				return fmt.Errorf("the owner of %s %s/%s: %w", c.resource.Resource, c.meta.Namespace, c.meta.Name, err)
			}
		}
		return m.patch(ctx, c, map[string]any{
			"ownerReferences": owners, "labels": map[string]any{orphaned: nil}, "annotations": map[string]any{ownersKey: nil},
		})
	})
}

// patch changes metadata, unless the object has changed since it was read.
func (m *mover) patch(ctx context.Context, c child, change map[string]any) error {
	change["resourceVersion"], change["uid"] = c.meta.ResourceVersion, c.meta.UID
	for attempt := 0; ; attempt++ {
		content, err := json.Marshal(map[string]any{"metadata": change})
		if err != nil {
			return err
		}
		client := m.metadata.Resource(c.resource).Namespace(c.meta.Namespace)
		_, err = client.Patch(ctx, c.meta.Name, types.MergePatchType, content, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) || attempt == maxLists {
			return err
		}
		current, err := client.Get(ctx, c.meta.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		// The status of a Job or pod has changed. The owners of an object whose controller stands still do not.
		change["resourceVersion"] = current.ResourceVersion
	}
}
