// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// podGroups labels the pods of groups, once of few and once of many, whose cost for each pod must be the same.
func podGroups(ctx context.Context, r *runner) error {
	for range r.Runs {
		for _, part := range []struct {
			name   string
			groups int
			keep   bool
		}{{"few groups", r.Sizes.FewPodGroups, false}, {"groups", r.Sizes.PodGroups, true}} {
			if err := r.inSpace(ctx, unwatched, part.keep, func(ctx context.Context, s *space) error {
				return s.labelPodGroups(ctx, part.name, part.groups)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// labelPodGroups starts the pods of groups that need one pod more, and then lets these be enough. So starting the pods, which costs far
// more, is apart from labeling them.
func (s *space) labelPodGroups(ctx context.Context, name string, n int) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	pods, err := s.watchPods(watching)
	if err != nil {
		return err
	}
	size, all := s.Sizes.GroupPods, n*s.Sizes.GroupPods
	if err := s.eachGroup(ctx, n, func(group string) error { return s.createGroup(ctx, group, size+1) }); err != nil {
		return err
	}
	phase, err := s.measure(ctx, name+": start", func(ctx context.Context) error {
		if err := s.eachGroup(ctx, n, func(group string) error { return s.createGroupJob(ctx, group, size) }); err != nil {
			return err
		}
		return pods.until(ctx, "all pods run", all, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	})
	if err != nil {
		return err
	}
	phase.Add("writes to each group", report.UnitCount, phase.Last("calls/jobset-apiserver/PUT podreadinessgroups/status")/float64(n))
	phase, err = s.measure(ctx, name+": label", func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"spec":{"minMember":%d}}`, size)
		if err := s.eachGroup(ctx, n, func(group string) error {
			_, err := s.Cluster.JobSets.BatchV1alpha1().PodReadinessGroups(s.name).Patch(ctx, group, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}); err != nil {
			return err
		}
		return pods.until(ctx, "all pods have the label", all, func(p *corev1.Pod) bool {
			return p.Labels[batchv1alpha1.PodGroupReadyKey] == batchv1alpha1.PodGroupReadyValue
		})
	})
	if err != nil {
		return err
	}
	perPod := func(d float64) float64 { return millis(time.Duration(d*float64(time.Second))) / float64(all) }
	phase.Add("CPU of jobset-controller for each pod", report.UnitMillis, perPod(phase.Last("cpu/jobset-controller")))
	phase.Add("CPU of all programs for each pod", report.UnitMillis, perPod(phase.Last("cpu/total")))
	return nil
}

// watchPods follows the pods of the namespace. Of their specs nothing is kept.
func (s *space) watchPods(ctx context.Context) (*tracker[*corev1.Pod], error) {
	factory := informers.NewSharedInformerFactoryWithOptions(s.Cluster.Kube, 0, informers.WithNamespace(s.name), informers.WithTransform(func(obj any) (any, error) {
		if pod, ok := obj.(*corev1.Pod); ok {
			pod.Spec, pod.ManagedFields = corev1.PodSpec{}, nil
		}
		return obj, nil
	}))
	pods, err := newTracker[*corev1.Pod](ctx, factory.Core().V1().Pods().Informer(), s.Timeout)
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	pods.log = s.Log
	return pods, nil
}

func (s *space) eachGroup(ctx context.Context, n int, do func(group string) error) error {
	return all(ctx, n, parallel, func(i int) error { return do(fmt.Sprintf("group-%d", i)) })
}

func (s *space) createGroup(ctx context.Context, name string, minMember int) error {
	group := &batchv1alpha1.PodReadinessGroup{
		ObjectMeta: objectMeta(name, s.name), Spec: batchv1alpha1.PodReadinessGroupSpec{MinMember: ptr.To(int32(minMember))}, //nolint:gosec // a small number
	}
	_, err := s.Cluster.JobSets.BatchV1alpha1().PodReadinessGroups(s.name).Create(ctx, group, metav1.CreateOptions{})
	return err
}

// createGroupJob creates a Job with the pods of a group.
func (s *space) createGroupJob(ctx context.Context, group string, pods int) error {
	job := &batchv1.Job{ObjectMeta: objectMeta(group, s.name), Spec: jobSpec(running)}
	job.Spec.Parallelism, job.Spec.Completions = ptr.To(int32(pods)), ptr.To(int32(pods)) //nolint:gosec // a small number
	job.Spec.Template.Labels = map[string]string{batchv1alpha1.PodGroupKey: group}
	_, err := s.Cluster.Kube.BatchV1().Jobs(s.name).Create(ctx, job, metav1.CreateOptions{})
	return err
}
