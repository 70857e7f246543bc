// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/logging"
)

const (
	// causeTimeout is how long a restart waits for what caused it.
	causeTimeout = 2 * time.Second
	// podsPerPage is how many pods one request reads.
	podsPerPage = 500
	// watchPoll is how often a restart looks whether the watch of pods has come to where the API is.
	watchPoll = 20 * time.Millisecond
	// causesKept is how long a cause is remembered that could not be stored at once. The pods may be gone by the next try.
	causesKept = 10 * time.Minute
)

// firstCause returns why a Job failed. What the watch of pods has shown costs no request. Pods are read only if it has shown
// no failure, once for each failed Job: they may have failed while no controller ran. If they cannot be read in time, a
// failure that decides is described by what its Job says, and for one that does not decide yet there is no answer.
func (c *Controller) firstCause(ctx context.Context, namespace string, job plan.FailedJob) *jobsetv1alpha2.FailureCause {
	if seen := c.failures.first(job.UID); seen != nil {
		return helper.FirstCause(job.Name, job.Failure, seen)
	}
	if known, found := c.causes.Get(job.UID); found {
		return known.(*jobsetv1alpha2.FailureCause)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), causeTimeout) // what is stored is not corrected later
	defer cancel()
	pods, err := c.podsOfJob(ctx, namespace, job)
	if err != nil {
		c.queue.Failures().Retried(klog.FromContext(ctx), logging.General, err, "Could not read all pods of a failed Job", "job", klog.KRef(namespace, job.Name))
		if len(pods) == 0 && !job.Decided {
			return nil
		}
	}
	first := firstFailure(pods)
	if first == nil && err == nil {
		first = c.awaitWatch(ctx, job, pods)
	}
	cause := helper.FirstCause(job.Name, job.Failure, first)
	c.causes.Set(job.UID, cause, causesKept)
	return cause
}

func firstFailure(pods []corev1.Pod) (first *helper.PodFailure) {
	for i := range pods {
		first = helper.FirstFailure(first, helper.FailureOfPod(&pods[i]))
	}
	return first
}

// awaitWatch waits until the watch of pods has shown the end of all pods that were gone when they were read, and returns
// what failed first in them; nil if nothing did.
func (c *Controller) awaitWatch(ctx context.Context, job plan.FailedJob, read []corev1.Pod) (first *helper.PodFailure) {
	there := sets.New[string]()
	for i := range read {
		there.Insert(read[i].Name)
	}
	shown := false // a failure is remembered a moment after the cache shows the end of the pod
	_ = wait.PollUntilContextCancel(ctx, watchPoll, true, func(context.Context) (bool, error) {
		if first = c.failures.first(job.UID); first != nil || shown {
			return true, nil
		}
		shown = !slices.ContainsFunc(c.caches.pods.List(), func(obj any) bool {
			pod, ok := obj.(*watchedPod)
			return ok && pod.jobUID() == job.UID && !there.Has(pod.name)
		})
		return false, nil
	}) // after the time, what is known must do
	return first
}

// podsOfJob returns the pods of a Job, or those that could be read. Of a Job whose containers are never restarted only
// those pods are of interest that have failed; if there are none, something else may be found in the others.
func (c *Controller) podsOfJob(ctx context.Context, namespace string, job plan.FailedJob) ([]corev1.Pod, error) {
	if !job.InContainers {
		pods, err := c.listPods(ctx, namespace, job, fields.OneTermEqualSelector("status.phase", string(corev1.PodFailed)))
		if err != nil || len(pods) > 0 {
			return pods, err
		}
	}
	return c.listPods(ctx, namespace, job, fields.Everything())
}

func (c *Controller) listPods(ctx context.Context, namespace string, job plan.FailedJob, which fields.Selector) ([]corev1.Pod, error) {
	options := metav1.ListOptions{
		LabelSelector: labels.Set{batchv1.ControllerUidLabel: string(job.UID)}.String(),
		FieldSelector: which.String(), Limit: podsPerPage,
	}
	var pods []corev1.Pod
	for {
		page, err := c.Kube.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return pods, err
		}
		pods = append(pods, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return pods, nil
		}
	}
}
