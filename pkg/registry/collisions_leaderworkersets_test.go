// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

// named returns a set.
func named(name string, replicas, size int32, unique bool) *leaderworkerset.LeaderWorkerSet {
	set := &leaderworkerset.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Replicas, set.Spec.LeaderWorkerTemplate.GroupSize = &replicas, &size
	if unique {
		set.Spec.NetworkConfig = &leaderworkerset.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkerset.SubdomainUniquePerReplica)}
	}
	return set
}

// TestLeaderWorkerSets creates sets beside one whose children have the same names.
func TestLeaderWorkerSets(t *testing.T) {
	for name, c := range map[string]struct {
		exists, created *leaderworkerset.LeaderWorkerSet
		want            []string
	}{
		"a name of a group that exists": {named("a", 2, 2, false), named("a-1", 1, 1, false), []string{
			`metadata.name: the LeaderWorkerSet "a" has the same StatefulSet, "a-1": group 1 of "a" needs it, and so does "a-1"; the one that comes later waits for the name`,
		}},
		"a group with the name of a set": {named("a-1", 1, 1, false), named("a", 2, 2, false), []string{
			`metadata.name: the LeaderWorkerSet "a-1" has the same StatefulSet, "a-1": group 1 of "a" needs it, and so does "a-1"; the one that comes later waits for the name`,
		}},
		"a Service of a group": {named("a", 2, 1, true), named("a-1", 1, 1, false), []string{
			`metadata.name: the LeaderWorkerSet "a" has the same Service, "a-1": group 1 of "a" needs it, and so does "a-1"; the one that comes later waits for the name`,
		}},
		"a group that does not exist":          {named("a", 1, 2, false), named("a-1", 1, 1, false), nil},
		"a name that no group has":             {named("a", 9, 2, false), named("a-01", 1, 1, false), nil},
		"a set that has no such group":         {named("a-2", 1, 1, false), named("a", 2, 2, false), nil},
		"groups of one pod":                    {named("a", 2, 1, false), named("a-1", 1, 1, false), nil},
		"groups of one pod, each with Service": {named("a", 2, 1, true), named("a-1", 1, 1, true), nil},
		"another name":                         {named("a", 2, 2, false), named("b", 1, 2, false), nil},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, []runtime.Object{c.exists}, c.created, c.want...)
		})
	}
	if asked := expect(t, nil, named("many", 1_000_000, 2, false)); asked != 1+16 {
		t.Errorf("%d names are looked up, want 17: one of the leaders, and 16 of groups", asked)
	}
}
