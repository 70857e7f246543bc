// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

const (
	// allowedStatefulSets are the StatefulSets that the quota of refusals allows: the one of the leaders, and those of a few groups.
	allowedStatefulSets = 5
	// backingOff is how long refused sets are left alone before they are measured: in that time the pauses between tries grow to 12 seconds.
	backingOff = 15 * time.Second
	// nowhere is a label that no node has.
	nowhere = "jobset-apiserver.io/bench-nowhere"
)

// refusals watches sets for which nothing can be done: one whose groups get no StatefulSets for their workers, because
// a quota is used up, and one whose leaders get no node, and with them no domain. Both have more groups than one pass
// of the controller creates workers for.
func refusals(ctx context.Context, r *runner) error {
	for range r.Runs {
		err := r.inSpace(ctx, unwatched, false, func(ctx context.Context, s *space) error {
			return s.stuckGroups(ctx, report.QuotaUsedUp, podReady, func(*leaderworkersetv1.LeaderWorkerSet) error {
				return s.createQuota(ctx)
			})
		})
		if err != nil {
			return err
		}
		if err := r.inSpace(ctx, unwatched, false, func(ctx context.Context, s *space) error {
			return s.stuckGroups(ctx, report.NoNode, unscheduled, func(set *leaderworkersetv1.LeaderWorkerSet) error {
				set.Annotations = map[string]string{leaderworkersetv1.ExclusiveKeyAnnotationKey: corev1.LabelHostname}
				set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.NodeSelector = map[string]string{nowhere: ""}
				return nil
			})
		}); err != nil {
			return err
		}
	}
	return nil
}

// stuckGroups creates a set after a change of it, waits until all leaders are there, and then measures a time in which nothing happens.
func (s *space) stuckGroups(ctx context.Context, phase string, there func(*corev1.Pod) bool, change func(*leaderworkersetv1.LeaderWorkerSet) error) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	shown, err := s.watchPods(watching)
	if err != nil {
		return err
	}
	set := s.setOfGroups(s.Sizes.StuckGroups, 2)
	if err := change(set); err != nil {
		return err
	}
	if _, err := s.Cluster.JobSets.LeaderworkersetV1().LeaderWorkerSets(s.name).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := shown.untilSome(ctx, "all leaders are there", s.Sizes.StuckGroups, func(p *corev1.Pod) bool {
		return p.Labels[leaderworkersetv1.WorkerIndexLabelKey] == "0" && there(p)
	}); err != nil {
		return err
	}
	if err := cluster.Pause(ctx, backingOff); err != nil {
		return err
	}
	begin := time.Now()
	before, err := s.Cluster.Syncs(ctx, "leaderworkerset")
	if err != nil {
		return err
	}
	to, err := s.measure(ctx, phase, func(ctx context.Context) error {
		return cluster.Pause(ctx, time.Duration(s.Sizes.StuckSeconds)*time.Second)
	})
	if err != nil {
		return err
	}
	after, err := s.Cluster.Syncs(ctx, "leaderworkerset")
	if err != nil {
		return err
	}
	to.Add(report.Syncs, report.UnitCalls, after-before)
	to.Add(report.Watched, report.UnitSeconds, time.Since(begin).Seconds())
	return nil
}

// createQuota creates a quota, and waits until it counts.
func (s *space) createQuota(ctx context.Context) error {
	const counted = "count/statefulsets.apps"
	quotas := s.Cluster.Kube.CoreV1().ResourceQuotas(s.name)
	if _, err := quotas.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: objectMeta("few", s.name),
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: *resource.NewQuantity(allowedStatefulSets, resource.DecimalSI)}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, pollInterval, s.Timeout, true, func(ctx context.Context) (bool, error) {
		quota, err := quotas.Get(ctx, "few", metav1.GetOptions{})
		return err == nil && len(quota.Status.Used) > 0, err
	})
}

// unscheduled returns whether the scheduler has found no node for a pod.
func unscheduled(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// setOfGroups returns a set of so many groups of a size.
func (s *space) setOfGroups(n, size int) *leaderworkersetv1.LeaderWorkerSet {
	return &leaderworkersetv1.LeaderWorkerSet{
		ObjectMeta: objectMeta(setName, s.name),
		Spec: leaderworkersetv1.LeaderWorkerSetSpec{
			Replicas:      ptr.To(int32(n)),                             //nolint:gosec // a small number
			StartupPolicy: leaderworkersetv1.StartupPolicyLeaderCreated, // upstream does not accept the empty value
			LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
				GroupSize: ptr.To(int32(size)), WorkerTemplate: servingTemplate(nil), //nolint:gosec // a small number
			},
		},
	}
}
