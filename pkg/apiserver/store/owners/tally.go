// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// tally is what was counted of one resource.
type tally struct {
	resource Resource
	owned    int
	// lost is how many objects each lost owner has, and unkept how many have owners that are not kept.
	lost   map[types.UID]int
	unkept int
	// named are some of the objects.
	named []named
}

// named is an object of a lost owner.
type named struct {
	name  string
	owner types.UID
}

func (t *tally) add(object *metav1.PartialObjectMetadata, owner types.UID, known sets.Set[types.UID]) {
	t.owned++
	if known.Has(owner) {
		return
	}
	if _, kept := t.lost[owner]; !kept && (len(t.lost) == witness.MaxLostOwners || len(owner) > maxUID) {
		t.unkept++
		owner = ""
	} else {
		t.lost[owner]++
	}
	if len(t.named) < witness.MaxJobs {
		t.named = append(t.named, named{object.Namespace + "/" + object.Name, owner})
	}
}

// forget leaves out the owners that are known by now.
func (t *tally) forget(known sets.Set[types.UID]) {
	maps.DeleteFunc(t.lost, func(owner types.UID, _ int) bool { return known.Has(owner) })
	t.named = slices.DeleteFunc(t.named, func(n named) bool { return known.Has(n.owner) })
}

// total returns how many objects have lost owners.
func (t *tally) total() int {
	total := t.unkept
	for _, objects := range t.lost {
		total += objects
	}
	return total
}

func report(found []*tally) Report {
	owners, r := sets.New[types.UID](), Report{}
	for _, t := range found {
		owners = owners.Union(sets.KeySet(t.lost))
		r.More = r.More || t.unkept > 0
		if t.owned == 0 {
			continue
		}
		count := Count{Resource: t.resource, Owned: t.owned, Lost: t.total()}
		for _, n := range t.named {
			count.Names = append(count.Names, n.name)
		}
		r.Counts = append(r.Counts, count)
	}
	if r.Owners = sets.List(owners); len(r.Owners) > witness.MaxLostOwners {
		r.Owners, r.More = r.Owners[:witness.MaxLostOwners], true
	}
	return r
}
