// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// These tests have no row of upstream's: only this project has the history of a set.

func podsRestart(policy corev1.RestartPolicy) func(*jobSet) {
	return func(js *jobSet) {
		for i := range js.Spec.ReplicatedJobs {
			js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.RestartPolicy = policy
		}
	}
}

// pod plays the Job controller and a kubelet: it makes the only pod of a Job, on a node, in a state.
func (e *env) pod(job, node string, status corev1.PodStatus) *corev1.Pod {
	e.Helper()
	owner := e.jobs()[job]
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: job + "-0-", Labels: owner.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: owner.Spec.Template.Spec,
	}
	pod.Spec.NodeName = node
	client := e.stack.Kube.CoreV1().Pods(e.namespace)
	created, err := client.Create(e.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		e.Fatal(err)
	}
	created.Status = status
	if created, err = client.UpdateStatus(e.Context(), created, metav1.UpdateOptions{}); err != nil {
		e.Fatal(err)
	}
	return created
}

// podsGo lets all pods disappear.
func (e *env) podsGo() {
	e.Helper()
	err := e.stack.Kube.CoreV1().Pods(e.namespace).DeleteCollection(e.Context(), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{})
	if err != nil {
		e.Fatal(err)
	}
}

func ended(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message, StartedAt: metav1.Now(), FinishedAt: metav1.Now(),
	}}
}

// history is what people read of status.attempts: one line for each attempt, without its times.
func (e *env) history() []string {
	e.Helper()
	var lines []string
	for _, a := range e.get().Status.Attempts {
		words := []string{fmt.Sprintf("%d %s", a.Number, a.Trigger)}
		for what, value := range map[string]string{"rule": a.Rule, "user": a.User, "for": a.Reason} {
			if value != "" {
				words = append(words, what+" "+value)
			}
		}
		slices.Sort(words[1:])
		for _, t := range []*metav1.MicroTime{a.RequestTime, a.CreateTime, a.ReadyTime, a.EndTime} {
			words = append(words, map[bool]string{true: "+", false: "-"}[t != nil])
		}
		words = append(words, string(a.Outcome), a.EndReason)
		if c := a.FirstCause; c != nil {
			words = append(words, fmt.Sprintf("cause: %s on %s: %s %d %s %q", c.Job, c.Node, c.Container, ptr.Deref(c.ExitCode, -1), c.Reason, c.Message))
		}
		lines = append(lines, strings.TrimSpace(strings.Join(words, " ")))
	}
	return lines
}

func (e *env) awaitHistory(want ...string) {
	e.Helper()
	e.eventually(func() string { return cmp.Diff(want, e.history()) })
}

// awaitEvent waits for an event about the set with the reason and the note.
func (e *env) awaitEvent(reason, note string) {
	e.Helper()
	e.eventually(func() string {
		list, err := e.stack.Kube.EventsV1().Events(e.namespace).List(e.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		var got []string
		for _, event := range list.Items {
			if event.Reason == reason {
				got = append(got, event.Note)
			}
		}
		if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, note) }) {
			return fmt.Sprintf("events %s: got %q, want %q", reason, got, note)
		}
		return ""
	})
}

func TestHistoryOutlivesPodsAndJobs(t *testing.T) {
	const restarts = "applying RestartJobSet failure policy action (first failed job: " + jobB1 + ")"
	first := "1 Start + + + + Restarted " + restarts + ` cause: ` + jobB1 + ` on node-3: main 137 OOMKilled "out of memory"`
	e := newEnv(t, released)
	e.create(testJobSet(failurePolicy(1), podsRestart(corev1.RestartPolicyNever)))
	e.awaitJobs(running, allJobs...)
	e.awaitHistory("1 Start + + - -")
	e.ready(allJobs...)
	e.awaitHistory("1 Start + + + -")

	pod := e.pod(jobB1, "node-3", corev1.PodStatus{
		Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: ended(137, "OOMKilled", "out of memory")}},
	})
	e.fail(jobB1)
	e.awaitHistory(first, "2 FailurePolicy for "+restarts+" + - - -")
	e.awaitEvent("FirstFailure", "pod "+pod.Name+" on node node-3: container main exited with 137 (OOMKilled): out of memory")
	e.podsGo()
	e.recreate(1)
	e.ready(allJobs...)
	e.awaitHistory(first, "2 FailurePolicy for "+restarts+" + + + -")
	e.awaitEvent("JobsRecreated", "all 4 jobs of attempt 2 were recreated ")
	if ready := e.get().Status.ReadyMilliseconds; ready <= 0 {
		t.Errorf("time in which all was ready: got %d ms", ready)
	}
	for _, c := range e.get().Status.Conditions {
		if c.ObservedGeneration != 1 {
			t.Errorf("condition %s is of generation %d", c.Type, c.ObservedGeneration)
		}
	}
}

// TestCauseIsReadBeforeTheJobHasFailed has pods whose containers restart. The Job controller deletes them as soon as it
// knows that the Job will fail.
func TestCauseIsReadBeforeTheJobHasFailed(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet(podsRestart(corev1.RestartPolicyOnFailure)))
	e.awaitJobs(running, allJobs...)
	e.activate(allJobs...)
	e.pod(jobA, "node-7", corev1.PodStatus{
		Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 6, LastTerminationState: ended(3, "Error", "")}},
	})
	e.setStatus([]string{jobA}, func(job *batchv1.Job) {
		condition(job, batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	})
	const cause = `cause: ` + jobA + ` on node-7: main 3 Error ""`
	e.awaitHistory("1 Start + + - -   " + cause)
	e.podsGo()
	e.setStatus([]string{jobA}, func(job *batchv1.Job) {
		stopPods(job)
		job.Status.Failed = 1
		condition(job, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	})
	e.awaitFailed("FailedJobs")
	e.awaitHistory("1 Start + + - + Failed jobset failed due to one or more job failures (first failed job: " + jobA + ") " + cause)
}

func TestHistoryOfActions(t *testing.T) {
	options := metav1.CreateOptions{}
	e := newEnv(t, released)
	e.create(testJobSet())
	e.awaitJobs(ofAttempt(0), allJobs...)
	e.awaitHistory("1 Start + + - -")

	restart := &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{Reason: "stuck", Preconditions: &batchv1alpha1.ActionPreconditions{Attempt: ptr.To[int32](1)}}}
	answer, err := e.sets.Restart(e.Context(), setName, restart, options)
	if err != nil {
		t.Fatal(err)
	}
	user := answer.Status.User
	e.recreate(1)
	first, second := "1 Start + + - + Restarted stuck", "2 Requested for stuck user "+user
	e.awaitHistory(first, second+" + + - -")
	e.awaitEvent("JobsRecreated", "all 4 jobs of attempt 2 were recreated ")

	single := &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{
		Scope: batchv1alpha1.RestartScopeJob, ReplicatedJob: groupB, JobIndex: ptr.To[int32](1), Reason: "slow"}}
	if _, err := e.sets.Restart(e.Context(), setName, single, options); err != nil {
		t.Fatal(err)
	}
	e.single(jobB1)
	third := "3 Requested for slow user " + user
	e.awaitHistory(first, second+" + + - + Restarted slow", third+" + + - -")
	e.awaitEvent("JobsRecreated", "job "+jobB1+" of attempt 3 was recreated ")

	suspended := batchv1alpha1.JobSetActionSpec{Reason: "lunch"}
	if _, err := e.sets.Suspend(e.Context(), setName, &batchv1alpha1.JobSetSuspend{Spec: suspended}, options); err != nil {
		t.Fatal(err)
	}
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "True SuspendedJobs")
	e.update(resume)
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "False ResumeJobs")
	e.awaitHistory(first, second+" + + - + Restarted slow", third+" + + - + Suspended lunch", "4 Resume user "+user+" + + - -")

	if _, err := e.sets.Cancel(e.Context(), setName, &batchv1alpha1.JobSetCancel{Spec: suspended}, options); err != nil {
		t.Fatal(err)
	}
	e.collectWhenDeleted(allJobs...)
	e.awaitFailed("Cancelled")
	if _, err := e.sets.Retry(e.Context(), setName, &batchv1alpha1.JobSetRetry{Spec: batchv1alpha1.JobSetRetrySpec{Reason: "again"}}, options); err != nil {
		t.Fatal(err)
	}
	e.awaitJobs(ofAttempt(2), allJobs...)
	e.complete(allJobs...)
	e.awaitCompleted()
	e.awaitHistory(first, second+" + + - + Restarted slow", third+" + + - + Suspended lunch", "4 Resume user "+user+" + + - + Cancelled lunch",
		"5 Retry for again user "+user+" + + + + Completed jobset completed successfully")
	js := e.get()
	begin, times := js.CreationTimestamp.Time, js.Status.Attempts[4]
	if times.RequestTime.Time.Before(begin) || times.EndTime.Time.Before(times.RequestTime.Time) || times.EndTime.Time.After(time.Now()) {
		t.Errorf("the set was created at %s, and its last attempt has the times %+v", begin, times)
	}
}
