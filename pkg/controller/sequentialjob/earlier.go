// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsethelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// livePods selects pods that have not ended. A pod on a lost node is one of them until it is removed.
const livePods = "status.phase!=Succeeded,status.phase!=Failed"

// pageSize is how many objects are read at a time. The first page with one that runs is the last one.
const pageSize = 500

// addEarlier adds what runs of earlier children. That they cannot be read is no reason to begin a step, and no error of the pass: it is
// looked again, and the status says so.
func (s *Syncer) addEarlier(ctx context.Context, obs *plan.Observed, query plan.EarlierQuery) {
	running, err := s.deps.Running(ctx, obs.SequentialJob, query)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot read what runs of earlier steps, trying again", "reason", err)
		obs.Earlier, obs.EarlierUnreadable = hostplan.NotObtained[string](), err.Error()
		return
	}
	obs.Earlier = hostplan.Existing(running, running != "")
}

// running implements SyncerConfig.Running. Jobs are read first: one that is gone then creates no pods any more.
func (c *Controller) running(ctx context.Context, sj *batchv1alpha1.SequentialJob, query plan.EarlierQuery) (string, error) {
	job, err := c.runningJob(ctx, sj, query)
	if err != nil || job != "" {
		return job, err
	}
	return c.runningPod(ctx, sj, query)
}

// runningPod returns a pod of the sequence that has not ended, and does not belong to the attempt that is to begin.
func (c *Controller) runningPod(ctx context.Context, sj *batchv1alpha1.SequentialJob, query plan.EarlierQuery) (string, error) {
	options := metav1.ListOptions{LabelSelector: batchv1alpha1.SequentialJobUIDKey + "=" + string(sj.UID), FieldSelector: livePods,
		Limit: pageSize}
	for {
		pods, err := c.Kube.CoreV1().Pods(sj.Namespace).List(ctx, options)
		if err != nil {
			return "", fmt.Errorf("listing pods of sequentialjob %s/%s: %w", sj.Namespace, sj.Name, err)
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; podRuns(pod) && !isOf(pod.Labels, query) {
				return podWords(pod), nil
			}
		}
		if options.Continue = pods.Continue; options.Continue == "" {
			return "", nil
		}
	}
}

func podRuns(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

func podWords(pod *corev1.Pod) string {
	if pod.Spec.NodeName == "" {
		return "pod " + pod.Name
	}
	return fmt.Sprintf("pod %s on node %s", pod.Name, pod.Spec.NodeName)
}

// isOf returns whether labels belong to the attempt that is to begin. Its child may exist before the caches show it.
func isOf(labels map[string]string, query plan.EarlierQuery) bool {
	return labels[batchv1alpha1.StepIndexKey] == strconv.Itoa(query.Index) &&
		labels[batchv1alpha1.StepAttemptKey] == strconv.Itoa(int(query.Attempt))
}

// runningJob returns a Job of an earlier JobSet of the sequence that may create pods, or has some.
func (c *Controller) runningJob(ctx context.Context, sj *batchv1alpha1.SequentialJob, query plan.EarlierQuery) (string, error) {
	if len(query.JobSets) == 0 {
		return "", nil
	}
	options := metav1.ListOptions{LabelSelector: fmt.Sprintf("%s in (%s)", jobsetv1alpha2.JobSetNameKey, strings.Join(query.JobSets, ",")),
		Limit: pageSize}
	for {
		jobs, err := c.Kube.BatchV1().Jobs(sj.Namespace).List(ctx, options)
		if err != nil {
			return "", fmt.Errorf("listing jobs of earlier steps of sequentialjob %s/%s: %w", sj.Namespace, sj.Name, err)
		}
		for i := range jobs.Items {
			job := &jobs.Items[i]
			pods := job.Spec.Template.Labels
			if pods[batchv1alpha1.SequentialJobUIDKey] == string(sj.UID) && !isOf(pods, query) && jobRuns(job) {
				return "job " + job.Name, nil
			}
		}
		if options.Continue = jobs.Continue; options.Continue == "" {
			return "", nil
		}
	}
}

// jobRuns returns whether a Job has not ended. A Job that is suspended and has no pods does not run: no controller resumes it.
func jobRuns(job *batchv1.Job) bool {
	switch s := &job.Status; {
	case jobsethelper.TrueJobCondition(job, batchv1.JobComplete) != nil, jobsethelper.TrueJobCondition(job, batchv1.JobFailed) != nil:
		return false
	case ptr.Deref(job.Spec.Suspend, false):
		return s.Active+ptr.Deref(s.Terminating, 0) > 0 || jobsethelper.SuspensionPending(job)
	}
	return true
}
