// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/logs"
)

// logOpener opens the log of a pod of the Job.
type logOpener func(ctx context.Context, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)

func logsOf(client kubernetes.Interface) logOpener {
	return func(ctx context.Context, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		return client.CoreV1().Pods(systemNamespace).GetLogs(pod, options).Stream(ctx)
	}
}

// follower prints the logs of the pods of a Job one after the other, and why there are none.
type follower struct {
	*remote
	job *batchv1.Job
	// read are the pods whose logs were printed, and said what was said about waiting.
	read sets.Set[types.UID]
	said sets.Set[string]
}

// follow prints what the Job does, and returns whether it has ended and what went wrong.
func (r *remote) follow(ctx context.Context, job *batchv1.Job) (ended bool, err error) {
	fmt.Fprintf(r.out, "Following %s, which goes on if this command is interrupted\n", jobText)
	f := &follower{remote: r, job: job, read: sets.New[types.UID](), said: sets.New[string]()}
	err = wait.PollUntilContextCancel(ctx, r.every, true, func(ctx context.Context) (bool, error) {
		over, err := f.look(ctx)
		if ended = over; !over && err != nil && !refused(err) && ctx.Err() == nil {
			// The network of this machine may come back, or kube-apiserver.
			f.say("The Job cannot be read now: " + err.Error())
			return false, nil
		}
		return over, err
	})
	return ended, err
}

// refused returns whether reading will not succeed a moment later.
func refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// say prints a text once.
func (f *follower) say(text string) {
	if text != "" && !f.said.Has(text) {
		f.said.Insert(text)
		fmt.Fprintln(f.out, text)
	}
}

// look prints what is new, and returns whether the Job has ended, with the error that the command ends with.
func (f *follower) look(ctx context.Context) (ended bool, err error) {
	// The Job is read before its pods: when it has ended, there are no further ones.
	job, err := f.jobs().Get(ctx, jobName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && job.UID != f.job.UID {
		return true, fmt.Errorf("%s was deleted: run kubectl jobset migrate status to see how far the migration is", jobText)
	}
	if err != nil {
		return false, err
	}
	pods, err := f.kube.CoreV1().Pods(systemNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: batchv1.ControllerUidLabel + "=" + string(job.UID),
	})
	if err != nil {
		return false, err
	}
	slices.SortStableFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for i := range pods.Items {
		if pod := &pods.Items[i]; !f.read.Has(pod.UID) && started(pod) {
			return false, f.log(ctx, pod)
		}
	}
	switch end := outcome(job); {
	case end == nil:
		f.say(f.waiting(ctx, job, pods.Items))
		return false, nil
	case end.Type == batchv1.JobFailed:
		return true, fmt.Errorf("%s failed: %s: %s; run the command again when the cause is repaired: it goes on with the migration",
			jobText, end.Reason, end.Message)
	}
	fmt.Fprintf(f.out, "%s has succeeded\n", jobText)
	return true, nil
}

// outcome returns the condition with which a Job has ended.
func outcome(job *batchv1.Job) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// state returns the state of the container of a pod.
func state(pod *corev1.Pod) corev1.ContainerState {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == jobContainer {
			return status.State
		}
	}
	return corev1.ContainerState{}
}

// started returns whether a pod has a log.
func started(pod *corev1.Pod) bool { return state(pod).Running != nil || state(pod).Terminated != nil }

// over returns whether nothing is added to the log of a pod any more.
func over(pod *corev1.Pod) bool {
	return state(pod).Terminated != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// log prints the log of a pod until it has ended. Connections end before that when kubelet or kube-apiserver is restarted; the log is
// opened again then where it was left.
func (f *follower) log(ctx context.Context, pod *corev1.Pod) error {
	f.say(fmt.Sprintf("Log of pod %s on node %s:", pod.Name, pod.Spec.NodeName))
	position := &logs.Position{}
	err := wait.PollUntilContextCancel(ctx, f.every, true, func(ctx context.Context) (bool, error) {
		complete, err := f.once(ctx, pod, position)
		if err != nil && !refused(err) && ctx.Err() == nil {
			f.say(fmt.Sprintf("The log of pod %s cannot be read now: %v", pod.Name, err))
			return complete, nil
		}
		return complete, err
	})
	if err != nil {
		return fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
	}
	f.read.Insert(pod.UID)
	return nil
}

// once prints what is new in the log of a pod, and returns whether nothing will be added.
func (f *follower) once(ctx context.Context, pod *corev1.Pod, position *logs.Position) (complete bool, err error) {
	current, err := f.kube.CoreV1().Pods(systemNamespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && current.UID != pod.UID {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	err = f.lines(ctx, pod.Name, position)
	// If the container had ended before the log was opened, the log is complete. One on a node that is lost cannot be read any more, and
	// another pod goes on.
	return over(current) || err != nil && current.DeletionTimestamp != nil, err
}

func (f *follower) lines(ctx context.Context, pod string, position *logs.Position) error {
	log, err := f.logs(ctx, pod, &corev1.PodLogOptions{Container: jobContainer, Follow: true, Timestamps: true, SinceTime: position.Since()})
	if err != nil {
		return err
	}
	defer log.Close()
	return logs.EachLine(log, func(line []byte) error {
		_, err := f.out.Write(position.Next(line))
		return err
	})
}

// waiting says why no pod runs.
func (f *follower) waiting(ctx context.Context, job *batchv1.Job, pods []corev1.Pod) string {
	switch {
	case ptr.Deref(job.Spec.Suspend, false):
		return "Waiting: the Job is suspended; exclude the namespace from what suspends Jobs, such as Kueue with manageJobsWithoutQueueName"
	case len(pods) == 0:
		return f.noPod(ctx)
	}
	pod := &pods[len(pods)-1]
	if over(pod) {
		return replaced(job, pod)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("Waiting: pod %s is not scheduled: %s: %s", pod.Name, c.Reason, c.Message)
		}
	}
	why := state(pod).Waiting
	if why == nil || why.Reason == "" {
		return "Waiting for pod " + pod.Name
	}
	text := fmt.Sprintf("Waiting for pod %s: %s", pod.Name, why.Reason)
	if why.Message != "" {
		text += ": " + why.Message
	}
	if strings.Contains(why.Reason, "Image") {
		text += fmt.Sprintf("; if image %s is not the right one, run kubectl -n %s delete job %s, and this command again with --image",
			pod.Spec.Containers[0].Image, systemNamespace, jobName)
	}
	return text
}

// replaced says how a pod has ended that the Job replaces.
func replaced(job *batchv1.Job, pod *corev1.Pod) string {
	limit := ptr.Deref(job.Spec.BackoffLimit, 0)
	how, succeeded := pod.Status.Reason+": "+pod.Status.Message, pod.Status.Phase == corev1.PodSucceeded
	if t := state(pod).Terminated; t != nil {
		how, succeeded = fmt.Sprintf("exit code %d (%s)", t.ExitCode, t.Reason), t.ExitCode == 0
	}
	if succeeded || limit == 0 {
		return "" // the Job ends, too
	}
	return fmt.Sprintf("Pod %s has ended with %s. Another one replaces it and goes on, unless %d have failed", pod.Name, how, limit+1)
}

// noPod says why the Job has no pod: a quota or a policy may refuse them, which only an event says.
func (f *follower) noPod(ctx context.Context) string {
	events, err := f.kube.CoreV1().Events(systemNamespace).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.uid": string(f.job.UID), "type": corev1.EventTypeWarning,
	}.String()})
	if err != nil || len(events.Items) == 0 {
		return "Waiting until the Job has a pod"
	}
	latest := slices.MaxFunc(events.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return fmt.Sprintf("Waiting: the Job has no pod: %s: %s", latest.Reason, latest.Message)
}
