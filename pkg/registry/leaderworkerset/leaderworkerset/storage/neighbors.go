// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// maxNeighbors is how many other names are looked up when a set is created.
const maxNeighbors = 16

// neighbors finds sets whose children have the same names: those of group 0 of a set "a" are called "a-0", as is the StatefulSet of a set "a-0". get reads a set.
type neighbors struct {
	get func(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)
}

// beginCreate warns of such sets when a set is created.
func (n neighbors) beginCreate(ctx context.Context, obj runtime.Object, _ *metav1.CreateOptions) (registry.FinishFunc, error) {
	if set, ok := obj.(*leaderworkerset.LeaderWorkerSet); ok {
		for _, text := range n.warnings(ctx, set) {
			warning.AddWarning(ctx, "", text)
		}
	}
	return func(context.Context, bool) {}, nil
}

// warnings returns the warnings about names that the children of other sets have, or will have.
func (n neighbors) warnings(ctx context.Context, set *leaderworkerset.LeaderWorkerSet) (texts []string) {
	if name, group := helper.ParentAndOrdinal(set.Name); group >= 0 && name != "" {
		if other := n.read(ctx, name); other != nil && group < groupsOf(other) {
			texts = shared(texts, other, group, set, other)
		}
	}
	for group := range min(groupsOf(set), maxNeighbors) {
		if other := n.read(ctx, helper.LeaderPodName(set.Name, int(group))); other != nil {
			texts = shared(texts, set, group, other, other)
		}
	}
	return texts
}

// read returns a set as the cache of the server has it; nil if there is none, or it cannot be read.
func (n neighbors) read(ctx context.Context, name string) *leaderworkerset.LeaderWorkerSet {
	obj, err := n.get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if set, ok := obj.(*leaderworkerset.LeaderWorkerSet); ok && err == nil {
		return set
	}
	return nil
}

// shared adds a warning if a group of a set and a set with the name of its leader pod need the same objects. The warning names the other one of the two.
func shared(texts []string, set *leaderworkerset.LeaderWorkerSet, group int32, named, other *leaderworkerset.LeaderWorkerSet) []string {
	kind := ""
	switch {
	case ptr.Deref(set.Spec.LeaderWorkerTemplate.GroupSize, 1) > 1:
		kind = "StatefulSet"
	case unique(set) && !unique(named):
		kind = "Service"
	default:
		return texts
	}
	return append(texts, fmt.Sprintf("metadata.name: the LeaderWorkerSet %q has the same %s, %q: group %d of %q needs it, and so does %q; the one that comes later waits for the name",
		other.Name, kind, named.Name, group, set.Name, named.Name))
}

// unique returns whether each group of a set has a Service.
func unique(set *leaderworkerset.LeaderWorkerSet) bool {
	network := set.Spec.NetworkConfig
	return network != nil && ptr.Deref(network.SubdomainPolicy, "") == leaderworkerset.SubdomainUniquePerReplica
}

// groupsOf returns how many groups a set has at rest.
func groupsOf(set *leaderworkerset.LeaderWorkerSet) int32 { return ptr.Deref(set.Spec.Replicas, 1) }
