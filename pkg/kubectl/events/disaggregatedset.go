// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// DisaggregatedSet is the Loader of DisaggregatedSets.
func DisaggregatedSet(ctx context.Context, c *cli.Clients, name string) (Members, error) {
	return load(ctx, c.JobSets.DisaggregatedsetV1().DisaggregatedSets(c.Namespace), name, membersOfRoles)
}

// roles are the members of a DisaggregatedSet.
type roles struct {
	*disaggregatedsetv1.DisaggregatedSet
	// names match the names of the LeaderWorkerSets of each role, of all slices and revisions, inside of other names.
	names []*regexp.Regexp
}

func membersOfRoles(set *disaggregatedsetv1.DisaggregatedSet) roles {
	r := roles{DisaggregatedSet: set}
	for i := range set.Spec.Roles {
		r.names = append(r.names, regexp.MustCompile(regexp.QuoteMeta(set.Name)+"-[0-9]+-[a-z0-9]+-"+regexp.QuoteMeta(set.Spec.Roles[i].Name)))
	}
	return r
}

// Since implements Members.
func (r roles) Since() time.Time { return r.CreationTimestamp.Time }

// Has implements Members.
func (r roles) Has(kind, name string) bool {
	switch kind {
	case cli.DisaggregatedSet.Title:
		return name == r.Name
	case "DisaggregatedSetRoleScaler":
		return slices.ContainsFunc(r.Spec.Roles, func(role disaggregatedsetv1.DisaggregatedRoleSpec) bool {
			return name == helper.ScalerName(r.Name, role.Name)
		})
	}
	for i, pattern := range r.names {
		found := pattern.FindString(name)
		if found == "" {
			continue
		}
		set := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: found}, Spec: r.Spec.Roles[i].Spec}
		if membersOfLeaderWorkerSet(set).Has(kind, name) || kind == "Service" && name == helper.ServiceName(found) {
			return true
		}
	}
	return false
}
