// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package collisions

import (
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// maxGroups is how many groups of a set are looked at.
const maxGroups = 16

// leaderWorkerSet warns of sets whose children have the same names: those of group 0 of a set "a" are called "a-0", as
// is the StatefulSet of a set "a-0".
func (l *look) leaderWorkerSet(set *leaderworkerset.LeaderWorkerSet) {
	if name, group := helper.ParentAndOrdinal(set.Name); group >= 0 && helper.LeaderPodName(name, group) == set.Name {
		if other := l.setNamed(name); other != nil && group < groupsOf(other) {
			l.sharedGroup(other, group, set, other)
		}
	}
	for group := range min(groupsOf(set), maxGroups) {
		if other := l.setNamed(helper.LeaderPodName(set.Name, int(group))); other != nil {
			l.sharedGroup(set, group, other, other)
		}
	}
	if js := l.jobSetNamed(set.Name); js != nil && !unique(set) && serviceOf(js) == set.Name {
		l.Warn("the JobSet %q needs a Service of the same name, %q; pods of the one that comes later have no DNS names", js.Name, set.Name)
	}
}

// sharedGroup warns if a group of a set and a set with the name of its leader pod need the same objects. The warning
// names the other one of the two.
func (l *look) sharedGroup(set *leaderworkerset.LeaderWorkerSet, group int32, named, other *leaderworkerset.LeaderWorkerSet) {
	kind := ""
	switch {
	case ptr.Deref(set.Spec.LeaderWorkerTemplate.GroupSize, 1) > 1:
		kind = "StatefulSet"
	case unique(set) && !unique(named):
		kind = "Service"
	default:
		return
	}
	l.Warn("the LeaderWorkerSet %q has the same %s, %q: group %d of %q needs it, and so does %q; the one that comes later waits for the name",
		other.Name, kind, named.Name, group, set.Name, named.Name)
}

// unique returns whether each group of a set has a Service.
func unique(set *leaderworkerset.LeaderWorkerSet) bool {
	network := set.Spec.NetworkConfig
	return network != nil && ptr.Deref(network.SubdomainPolicy, "") == leaderworkerset.SubdomainUniquePerReplica
}

// groupsOf returns how many groups a set has at rest.
func groupsOf(set *leaderworkerset.LeaderWorkerSet) int32 { return ptr.Deref(set.Spec.Replicas, 1) }
