// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// scaling is a change of the number of groups.
type scaling struct {
	phase    string
	from, to int
}

// scalings are the changes of n groups: to twice as many, and from there to half as many.
func scalings(n int) []scaling {
	return []scaling{{report.ScaleUp, n, 2 * n}, {report.ScaleDown, 2 * n, max(n/2, 1)}}
}

// scaleGroups is done with each number of groups when their pods are ready, and when there are no others.
func (s *space) scaleGroups(ctx context.Context, name string, pods podsInGroups, shown *tracker[*corev1.Pod]) error {
	for _, change := range scalings(s.Sizes.ServingGroups) {
		if _, err := s.measure(ctx, name+": "+change.phase, func(ctx context.Context) error {
			if err := pods.scale(ctx, s, change.from, change.to); err != nil {
				return err
			}
			return shown.until(ctx, "all pods are ready", change.to*s.Sizes.ServingPods, podReady)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (groupsOfSet) scale(ctx context.Context, s *space, _, to int) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, to)
	_, err := s.Cluster.JobSets.LeaderworkersetV1().LeaderWorkerSets(s.name).Patch(ctx, setName, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// scale removes the groups with the highest numbers, as a LeaderWorkerSet does.
func (statefulSets) scale(ctx context.Context, s *space, from, to int) error {
	if to > from {
		return createStatefulSets(ctx, s, from, to)
	}
	return all(ctx, from-to, parallel, func(i int) error {
		return s.Cluster.Kube.AppsV1().StatefulSets(s.name).Delete(ctx, groupName(to+i), metav1.DeleteOptions{})
	})
}
