// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package failures

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/logging"
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

// Job is a failed Job.
type Job struct {
	Name string
	UID  types.UID
	// Decided means that the failure has an effect now: there will be no other time to look.
	Decided bool
	// InContainers means that pods may hold the failure although they have not failed themselves.
	InContainers bool
	// Failure is the condition of the Job that reports its failure.
	Failure batchv1.JobCondition
}

// Reader finds out why Jobs fail.
type Reader struct {
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Failures are the failures that the watch of pods has shown.
	Failures *Store
	// AnyPod returns whether the cache holds a pod that matches.
	AnyPod func(match func(*Pod) bool) bool
	// Log is for pods that cannot be read.
	Log *logging.Repeats
	// causes are the causes that were read from the API, by the UID of the Job.
	causes *expiring.Expiring
}

// NewReader returns a Reader that remembers nothing.
func NewReader(kube kubernetes.Interface, failures *Store, anyPod func(match func(*Pod) bool) bool, log *logging.Repeats) *Reader {
	return &Reader{Kube: kube, Failures: failures, AnyPod: anyPod, Log: log, causes: expiring.NewExpiring()}
}

// FirstCause returns why a Job failed. What the watch of pods has shown costs no request. Pods are read only if it has shown
// no failure, once for each failed Job: they may have failed while no controller ran. If they cannot be read in time, a
// failure that decides is described by what its Job says, and for one that does not decide yet there is no answer.
func (r *Reader) FirstCause(ctx context.Context, namespace string, job Job) *jobsetv1alpha2.FailureCause {
	if seen := r.Failures.First(job.UID); seen != nil {
		return helper.FirstCause(job.Name, job.Failure, seen)
	}
	if known, found := r.causes.Get(job.UID); found {
		return known.(*jobsetv1alpha2.FailureCause)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), causeTimeout) // what is stored is not corrected later
	defer cancel()
	pods, err := r.podsOfJob(ctx, namespace, job)
	if err != nil {
		r.Log.Retried(klog.FromContext(ctx), logging.General, err, "Could not read all pods of a failed Job", "job",
			klog.KRef(namespace, job.Name))
		if len(pods) == 0 && !job.Decided {
			return nil
		}
	}
	first := firstFailure(pods)
	if first == nil && err == nil {
		first = r.awaitWatch(ctx, job, pods)
	}
	cause := helper.FirstCause(job.Name, job.Failure, first)
	r.causes.Set(job.UID, cause, causesKept)
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
func (r *Reader) awaitWatch(ctx context.Context, job Job, read []corev1.Pod) (first *helper.PodFailure) {
	there := sets.New[string]()
	for i := range read {
		there.Insert(read[i].Name)
	}
	shown := false // a failure is remembered a moment after the cache shows the end of the pod
	_ = wait.PollUntilContextCancel(ctx, watchPoll, true, func(context.Context) (bool, error) {
		if first = r.Failures.First(job.UID); first != nil || shown {
			return true, nil
		}
		shown = !r.AnyPod(func(pod *Pod) bool { return pod.JobUID() == job.UID && !there.Has(pod.Name) })
		return false, nil
	}) // after the time, what is known must do
	return first
}

// podsOfJob returns the pods of a Job, or those that could be read. Of a Job whose containers are never restarted only
// those pods are of interest that have failed; if there are none, something else may be found in the others.
func (r *Reader) podsOfJob(ctx context.Context, namespace string, job Job) ([]corev1.Pod, error) {
	if !job.InContainers {
		pods, err := r.listPods(ctx, namespace, job, fields.OneTermEqualSelector("status.phase", string(corev1.PodFailed)))
		if err != nil || len(pods) > 0 {
			return pods, err
		}
	}
	return r.listPods(ctx, namespace, job, fields.Everything())
}

func (r *Reader) listPods(ctx context.Context, namespace string, job Job, which fields.Selector) ([]corev1.Pod, error) {
	options := metav1.ListOptions{
		LabelSelector: labels.Set{batchv1.ControllerUidLabel: string(job.UID)}.String(),
		FieldSelector: which.String(), Limit: podsPerPage,
	}
	var pods []corev1.Pod
	for {
		page, err := r.Kube.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return pods, err
		}
		pods = append(pods, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return pods, nil
		}
	}
}
