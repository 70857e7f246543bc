// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func retryOnConflict(write func() error) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, write)
}

// setStatus plays the Job controller: it writes the status of Jobs.
func (e *env) setStatus(names []string, change func(*batchv1.Job)) {
	e.Helper()
	client := e.stack.Kube.BatchV1().Jobs(e.namespace)
	for _, name := range names {
		err := retryOnConflict(func() error {
			job, err := client.Get(e.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if job.Status.StartTime == nil {
				job.Status.StartTime = ptr.To(metav1.Now())
			}
			change(job)
			_, err = client.UpdateStatus(e.Context(), job, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			e.Fatalf("writing the status of Job %s: %v", name, err)
		}
	}
}

func pods(job *batchv1.Job) int32 { return *job.Spec.Parallelism }

// activate gives Jobs pods that are not ready yet.
func (e *env) activate(names ...string) {
	e.Helper()
	e.setStatus(names, func(job *batchv1.Job) { job.Status.Active, job.Status.Ready = pods(job), ptr.To[int32](0) })
}

// ready makes all pods of Jobs ready.
func (e *env) ready(names ...string) {
	e.Helper()
	e.setStatus(names, func(job *batchv1.Job) { job.Status.Active, job.Status.Ready = pods(job), ptr.To(pods(job)) })
}

// complete ends Jobs with success.
func (e *env) complete(names ...string) {
	e.Helper()
	e.setStatus(names, func(job *batchv1.Job) {
		stopPods(job)
		job.Status.Succeeded = pods(job)
		job.Status.CompletedIndexes = "0"
		if pods(job) > 1 {
			job.Status.CompletedIndexes = fmt.Sprintf("0-%d", pods(job)-1)
		}
		job.Status.CompletionTime = ptr.To(metav1.Now())
		condition(job, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, "")
		condition(job, batchv1.JobComplete, batchv1.JobReasonCompletionsReached, "")
	})
}

// fail ends Jobs as one that has used up its backoffLimit.
func (e *env) fail(names ...string) {
	e.Helper()
	e.failFor(batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit", names...)
}

// failFor ends Jobs with failure, for the reason and with the message.
func (e *env) failFor(reason, message string, names ...string) {
	e.Helper()
	e.setStatus(names, func(job *batchv1.Job) {
		stopPods(job)
		job.Status.Failed = 1
		condition(job, batchv1.JobFailureTarget, reason, message)
		condition(job, batchv1.JobFailed, reason, message)
	})
}

// stop plays what happens to Jobs that were suspended while they ran: their pods go.
func (e *env) stop(names ...string) {
	e.Helper()
	e.setStatus(names, func(job *batchv1.Job) {
		stopPods(job)
		job.Status.StartTime = nil
		condition(job, batchv1.JobSuspended, "JobSuspended", "Job suspended")
	})
}

func stopPods(job *batchv1.Job) {
	job.Status.Active, job.Status.Ready, job.Status.Terminating = 0, ptr.To[int32](0), ptr.To[int32](0)
	job.Status.UncountedTerminatedPods = nil
}

func condition(job *batchv1.Job, kind batchv1.JobConditionType, reason, message string) {
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastProbeTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	})
}

// collect plays the garbage collector: Jobs that are being deleted in the foreground go away.
func (e *env) collect(names ...string) {
	e.Helper()
	client := e.stack.Kube.BatchV1().Jobs(e.namespace)
	for _, name := range names {
		err := retryOnConflict(func() error {
			job, err := client.Get(e.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if job.DeletionTimestamp == nil {
				return fmt.Errorf("it is not being deleted")
			}
			job.Finalizers = nil
			_, err = client.Update(e.Context(), job, metav1.UpdateOptions{})
			return err
		})
		if err != nil && !apierrors.IsNotFound(err) {
			e.Fatalf("collecting Job %s: %v", name, err)
		}
	}
}

// A Job that is being deleted takes no part any more.
func live(job *batchv1.Job) bool        { return job.DeletionTimestamp == nil }
func terminating(job *batchv1.Job) bool { return job.DeletionTimestamp != nil }
func suspended(job *batchv1.Job) bool   { return live(job) && ptr.Deref(job.Spec.Suspend, false) }
func running(job *batchv1.Job) bool     { return live(job) && !ptr.Deref(job.Spec.Suspend, false) }

func ofAttempt(attempt int) func(*batchv1.Job) bool {
	return func(job *batchv1.Job) bool {
		return live(job) && job.Labels[jobsetv1alpha2.RestartsKey] == fmt.Sprint(attempt)
	}
}

// awaitJobs waits until exactly these Jobs are there for which the condition holds.
func (e *env) awaitJobs(holds func(*batchv1.Job) bool, want ...string) {
	e.Helper()
	e.eventually(func() string { return difference("Jobs", want, e.names(holds)) })
}

// keepsJobs makes sure that exactly these Jobs remain for which the condition holds.
func (e *env) keepsJobs(holds func(*batchv1.Job) bool, want ...string) {
	e.Helper()
	e.stays(func() string { return difference("Jobs", want, e.names(holds)) })
}

// collectWhenDeleted waits for the deletion of Jobs, which then go away.
func (e *env) collectWhenDeleted(names ...string) {
	e.Helper()
	e.awaitJobs(terminating, names...)
	e.collect(names...)
}
