// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// lostOwners are the owners that a refused store does not know.
type lostOwners struct {
	sets.Set[types.UID]
	// apiGroups are the groups of our kinds that can be owners.
	apiGroups apigroups.List
	// More says that there are others, which are not listed.
	More bool
}

// getLostOwners reads the list that belongs to the record. A list of an earlier refusal is an error.
func (c *clients) getLostOwners(ctx context.Context, record *witness.Record) (*lostOwners, error) {
	cm, err := c.kube.CoreV1().ConfigMaps(witness.Namespace).Get(ctx, witness.LostOwnersName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, explain(err)
	}
	var list *witness.LostOwners
	if err == nil {
		if list, err = witness.ReadLostOwners(cm); err != nil {
			return nil, fmt.Errorf("%w: remove all entries of the ConfigMap; the server that refuses the store writes them again", err)
		}
	}
	if list == nil {
		return nil, fmt.Errorf("no owners are lost: ConfigMap %s/%s has none; a server that refuses a store writes them there", witness.Namespace,
			witness.LostOwnersName)
	}
	if record == nil || !list.Matches(record) {
		return nil, fmt.Errorf("ConfigMap %s/%s is about another store, %s at revision %d: if a server refuses a store now, run the command "+
			"again in a minute",
			witness.Namespace, witness.LostOwnersName, list.NewUUID, list.Revision)
	}
	return &lostOwners{sets.New(list.Owners...), apigroups.All().InEtcd(), list.More}, nil
}

// referencesOf returns the indexes of the owner references of an object to lost owners. Only references to our kinds count: the list has
// what users wrote into their Jobs, which could be the UID of an owner of another kind.
func (l *lostOwners) referencesOf(object *metav1.PartialObjectMetadata) []int {
	var indexes []int
	for i := range object.OwnerReferences {
		version, err := schema.ParseGroupVersion(object.OwnerReferences[i].APIVersion)
		if err == nil && l.Has(object.OwnerReferences[i].UID) && l.apiGroups.IsGroupRegistered(version.Group) {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// lossesOf counts the objects of lost owners. Those that are being deleted cannot be kept.
func (c *clients) lossesOf(ctx context.Context, lost *lostOwners) (witness.Losses, error) {
	resources, err := c.owned(ctx)
	if err != nil {
		return witness.Losses{}, err
	}
	var found witness.Losses
	for _, resource := range resources {
		var loss witness.Loss
		begin := func() { loss = witness.Loss{Resource: resource.Resource.String(), Kind: resource.Kind} }
		err := c.eachOrphan(ctx, lost, resource.GroupVersionResource, begin, func(object *metav1.PartialObjectMetadata) {
			if loss.Count++; len(loss.Names) < witness.MaxNames {
				loss.Names = append(loss.Names, object.Namespace+"/"+object.Name)
			}
		})
		if err != nil {
			return witness.Losses{}, err
		}
		found.Add(loss)
	}
	return found, nil
}

// owned returns the resources that our kinds can own, as far as the cluster serves them.
func (c *clients) owned(ctx context.Context) ([]owners.Served, error) {
	resources, err := owners.ServedBy(ctx, c.kube.Discovery())
	return resources, explain(err)
}

func (c *clients) eachOrphan(ctx context.Context, lost *lostOwners, resource schema.GroupVersionResource, begin func(),
	fn func(*metav1.PartialObjectMetadata)) error {
	return explain(owners.EachPage(ctx, c.metadata, resource, begin, func(page []metav1.PartialObjectMetadata) {
		for i := range page {
			if page[i].DeletionTimestamp == nil && len(lost.referencesOf(&page[i])) > 0 {
				fn(&page[i])
			}
		}
	}))
}
