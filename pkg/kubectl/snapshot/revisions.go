// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// mostRevisions is how many revisions are read. A set has at most a tenth of them.
const mostRevisions = 1000

// Revisions returns the revisions that exist of a LeaderWorkerSet, the oldest first.
func Revisions(ctx context.Context, c *cli.Clients, set *leaderworkersetv1.LeaderWorkerSet) ([]*appsv1.ControllerRevision, error) {
	list, err := c.Kube.AppsV1().ControllerRevisions(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: leaderworkersetv1.SetNameLabelKey + "=" + set.Name, Limit: mostRevisions,
	})
	if err != nil {
		return nil, fmt.Errorf("listing the controllerrevisions of leaderworkerset %s: %w", set.Name, err)
	}
	var out []*appsv1.ControllerRevision
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], set) {
			out = append(out, &list.Items[i])
		}
	}
	slices.SortFunc(out, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}
