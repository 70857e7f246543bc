// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package owners finds Jobs and volume claims whose owners the store does not know. The garbage collector deletes them as soon as a
// server answers for the store.
package owners

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"
)

const (
	// tolerated is how many objects without an owner are no reason to refuse a store: those of a deletion in the background.
	tolerated = 10
	// toleratedShare is one of how many objects may be without an owner when there are many.
	toleratedShare = 100
	// maxUID is the length of the longest UID that is kept. Those of this server have 36 characters; users can write any into a Job.
	maxUID = 128
)

// Jobs and Claims are the resources whose owners are checked. What else has owners of our kinds can be created again.
var (
	Jobs   = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	Claims = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
)

// Report is what the check has found.
type Report struct {
	// Owned is how many Jobs have an owner of our kinds, and Lost how many of them an owner that the store does not know.
	Owned, Lost int
	// Names are some of the lost Jobs as <namespace>/<name>, at most witness.MaxJobs.
	Names []string
	// OwnedClaims and LostClaims are the same for volume claims, which hold checkpoints.
	OwnedClaims, LostClaims int
	// Owners are the UIDs of the lost owners, sorted and without duplicates; those beyond witness.MaxLostOwners are left out.
	Owners []types.UID
	// More says that owners were left out.
	More bool
}

// Tolerable returns whether so little is lost that the store can be the right one: at most 10 Jobs, or 1 % of those that are owned,
// and as many claims.
func (r Report) Tolerable() bool {
	return r.Lost <= max(tolerated, r.Owned/toleratedShare) && r.LostClaims <= max(tolerated, r.OwnedClaims/toleratedShare)
}

// Checker compares the Jobs and claims of the main cluster with the store.
type Checker struct {
	// Metadata reaches the main cluster, where it lists Jobs and volume claims.
	Metadata metadata.Interface
	// Groups are the API groups whose objects are in the store. See groups.Groups.Served.
	Groups sets.Set[string]
	// Known returns the UIDs of all objects in the store.
	Known func(ctx context.Context) (sets.Set[types.UID], error)
}

// Check reads the metadata of all Jobs and claims, in pages. Of these it keeps only the UIDs of lost owners and some names.
func (c *Checker) Check(ctx context.Context) (Report, error) {
	known, err := c.known(ctx)
	if err != nil {
		return Report{}, err
	}
	foundJobs, err := c.count(ctx, Jobs, known)
	if err != nil {
		return Report{}, err
	}
	foundClaims, err := c.count(ctx, Claims, known)
	if err != nil {
		return Report{}, err
	}
	if len(foundJobs.lost)+len(foundClaims.lost) > 0 {
		// Another server may have stored an owner after the first list, and the controller may have created its Jobs.
		if known, err = c.known(ctx); err != nil {
			return Report{}, err
		}
		foundJobs.forget(known)
		foundClaims.forget(known)
	}
	return report(foundJobs, foundClaims), nil
}

func (c *Checker) known(ctx context.Context) (sets.Set[types.UID], error) {
	known, err := c.Known(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the objects in the store: %w", err)
	}
	return known, nil
}

// count reads all objects of a resource.
func (c *Checker) count(ctx context.Context, resource schema.GroupVersionResource, known sets.Set[types.UID]) (*tally, error) {
	var found *tally
	err := EachPage(ctx, c.Metadata, resource, func() { found = &tally{lost: map[types.UID]int{}} }, func(page []metav1.PartialObjectMetadata) {
		for i := range page {
			if owner := c.ownerOf(&page[i]); owner != "" && !unread(&page[i], known) {
				found.add(&page[i], owner, known)
			}
		}
	})
	return found, err
}

// ownerOf returns the UID of the controller of the object if its kind is one of ours.
func (c *Checker) ownerOf(object *metav1.PartialObjectMetadata) types.UID {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return ""
	}
	if version, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || !c.Groups.Has(version.Group) {
		return ""
	}
	return owner.UID
}
