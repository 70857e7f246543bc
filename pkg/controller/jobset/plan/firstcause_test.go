// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// second returns the time so many seconds after some time ago.
func second(n int) metav1.Time { return metav1.NewTime(before.Add(time.Duration(n) * time.Second)) }

// onNode returns a pod of the Job js-w-0 on a node.
func onNode(name, node string, change ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	for _, f := range change {
		f(&pod)
	}
	return pod
}

// firstOf returns what failed first in the pods.
func firstOf(pods ...corev1.Pod) *helper.PodFailure {
	var failures []*helper.PodFailure
	for i := range pods {
		failures = append(failures, helper.FailureOfPod(&pods[i]))
	}
	return helper.FirstFailure(failures...)
}

func terminated(code int32, reason, message string, ended int) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message, FinishedAt: second(ended)}
}

// exited ends a container for good, and restartedAfter ends it and starts it again.
func exited(container string, code int32, reason, message string, ended int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container, State: corev1.ContainerState{Terminated: terminated(code, reason, message, ended)}})
	}
}

func restartedAfter(container string, code int32, ended int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container, LastTerminationState: corev1.ContainerState{Terminated: terminated(code, "Error", "", ended)}})
	}
}

func initExited(code int32, ended int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name: "setup", State: corev1.ContainerState{Terminated: terminated(code, "Error", "", ended)}}}
	}
}

// isEvicted and isDisrupted are ends that the pod has a reason for.
func isEvicted(pod *corev1.Pod) {
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
}

func isDisrupted(reason, message string, when int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: second(when)})
	}
}

// stoppedAt makes the pod one that was told to end.
func stoppedAt(when int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		const grace = 30
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(second(when+grace)), ptr.To[int64](grace)
	}
}

func TestFirstCause(t *testing.T) {
	type cause = jobsetv1alpha2.FailureCause
	type pods = []corev1.Pod
	n := ptr.To[int32]
	when := func(s int) *metav1.Time { return ptr.To(second(s)) }
	ofJob := cause{Job: "js-w-0", Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit", Time: when(100)}
	for name, tc := range map[string]struct {
		pods pods
		want cause
		note string
	}{
		"no pod is left": {want: ofJob,
			note: "job js-w-0 failed (BackoffLimitExceeded): Job has reached the specified backoff limit"},
		"no pod has failed": {pods: pods{onNode("js-w-0-0-abcde", "n1", exited("main", 0, "Completed", "", 1))}, want: ofJob,
			note: "job js-w-0 failed (BackoffLimitExceeded): Job has reached the specified backoff limit"},
		"the container that failed first, of all pods": {
			pods: pods{onNode("js-w-0-0-abcde", "n1", exited("main", 1, "Error", "", 9)), onNode("js-w-0-1-fghij", "n3", exited("main", 137, "OOMKilled", "", 7)), onNode("js-w-0-2-klmno", "n2", exited("main", 1, "Error", "", 8))},
			want: cause{Job: "js-w-0", Pod: "js-w-0-1-fghij", Node: "n3", Container: "main", ExitCode: n(137), Signal: n(9), Reason: "OOMKilled", Time: when(7)},
			note: "pod js-w-0-1-fghij on node n3: container main exited with 137 (OOMKilled)"},
		"of pods that failed at the same time the first by name": {
			pods: pods{onNode("js-w-0-1-a", "n2", exited("main", 2, "Error", "", 7)), onNode("js-w-0-0-a", "n1", exited("main", 1, "Error", "", 7))},
			want: cause{Job: "js-w-0", Pod: "js-w-0-0-a", Node: "n1", Container: "main", ExitCode: n(1), Reason: "Error", Time: when(7)},
			note: "pod js-w-0-0-a on node n1: container main exited with 1"},
		"a container that runs again": {
			pods: pods{onNode("js-w-0-fghij", "n1", restartedAfter("main", 3, 4))},
			want: cause{Job: "js-w-0", Pod: "js-w-0-fghij", Node: "n1", Container: "main", ExitCode: n(3), Reason: "Error", Time: when(4)},
			note: "pod js-w-0-fghij on node n1: container main exited with 3"},
		"an init container": {
			pods: pods{onNode("js-w-0-0-fghij", "n1", initExited(5, 2), exited("main", 1, "Error", "", 3))},
			want: cause{Job: "js-w-0", Pod: "js-w-0-0-fghij", Node: "n1", Container: "setup", ExitCode: n(5), Reason: "Error", Time: when(2)},
			note: "pod js-w-0-0-fghij on node n1: container setup exited with 5"},
		"one of several containers, not the one that ended well": {
			pods: pods{onNode("js-w-0-0-fghij", "n1", exited("main", 0, "Completed", "", 1), exited("side", 143, "Error", "", 3))},
			want: cause{Job: "js-w-0", Pod: "js-w-0-0-fghij", Node: "n1", Container: "side", ExitCode: n(143), Signal: n(15), Reason: "Error", Time: when(3)},
			note: "pod js-w-0-0-fghij on node n1: container side exited with 143"},
		"the last line of its message is told": {
			pods: pods{onNode("js-w-0-0-fghij", "n1", exited("main", 1, "Error", "Traceback:\n  File x\nValueError: bad\n", 3))},
			want: cause{Job: "js-w-0", Pod: "js-w-0-0-fghij", Node: "n1", Container: "main", ExitCode: n(1), Reason: "Error", Message: "Traceback:\n  File x\nValueError: bad", Time: when(3)},
			note: "pod js-w-0-0-fghij on node n1: container main exited with 1: ValueError: bad"},
		"no signal has the number 127": {
			pods: pods{onNode("js-w-0-0-fghij", "n1", exited("main", 255, "Error", "", 3))},
			want: cause{Job: "js-w-0", Pod: "js-w-0-0-fghij", Node: "n1", Container: "main", ExitCode: n(255), Reason: "Error", Time: when(3)},
			note: "pod js-w-0-0-fghij on node n1: container main exited with 255"},
		"a pod that was evicted before it ran": {
			pods: pods{onNode("js-w-0-0-fghij", "n1", isEvicted)},
			want: cause{Job: "js-w-0", Pod: "js-w-0-0-fghij", Node: "n1", Reason: "Evicted", Message: "The node was low on resource: memory.", Time: when(100)},
			note: "pod js-w-0-0-fghij on node n1 failed (Evicted): The node was low on resource: memory."},
		"the reason of the pod wins over that of its container": {
			pods: pods{onNode("js-w-0-0-fghij", "n1", isDisrupted("PreemptionByScheduler", "preempted to accommodate another pod", 2), exited("main", 137, "Error", "", 32), stoppedAt(2))},
			want: cause{Job: "js-w-0", Pod: "js-w-0-0-fghij", Node: "n1", Container: "main", ExitCode: n(137), Signal: n(9), Reason: "PreemptionByScheduler", Message: "preempted to accommodate another pod", Time: when(2)},
			note: "pod js-w-0-0-fghij on node n1: container main exited with 137 (PreemptionByScheduler): preempted to accommodate another pod"},
		"what pods do when they are told to end is no cause": {
			pods: pods{onNode("js-w-0-0-fghij", "n1", exited("main", 143, "Error", "", 101), stoppedAt(100))}, want: ofJob,
			note: "job js-w-0 failed (BackoffLimitExceeded): Job has reached the specified backoff limit"},
		"what happened before that is": {
			pods: pods{onNode("js-w-0-0-fghij", "n1", restartedAfter("main", 1, 99), stoppedAt(100))},
			want: cause{Job: "js-w-0", Pod: "js-w-0-0-fghij", Node: "n1", Container: "main", ExitCode: n(1), Reason: "Error", Time: when(99)},
			note: "pod js-w-0-0-fghij on node n1: container main exited with 1"},
		"a container that was started again failed before that, even in the same second": {
			pods: pods{onNode("js-w-0-0-fghij", "n1", restartedAfter("main", 1, 100), stoppedAt(100))},
			want: cause{Job: "js-w-0", Pod: "js-w-0-0-fghij", Node: "n1", Container: "main", ExitCode: n(1), Reason: "Error", Time: when(100)},
			note: "pod js-w-0-0-fghij on node n1: container main exited with 1"},
		"a container that ends for good in the same second may have been told to end": {
			pods: pods{onNode("js-w-0-0-fghij", "n1", exited("main", 1, "Error", "", 100), stoppedAt(100))}, want: ofJob,
			note: "job js-w-0 failed (BackoffLimitExceeded): Job has reached the specified backoff limit"},
	} {
		t.Run(name, func(t *testing.T) {
			got := helper.FirstCause("js-w-0", batchv1.JobCondition{
				Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit", LastTransitionTime: second(100),
			}, firstOf(tc.pods...))
			diff(t, "cause", &tc.want, got)
			diff(t, "event", Event{Type: "Warning", Reason: "FirstFailure", Note: tc.note}, firstFailure(got))
		})
	}
}

func TestLongMessagesAreCutAtARune(t *testing.T) {
	pod := onNode("p", "n", exited("main", 1, "Error", "a"+strings.Repeat("é", 600), 1))
	got := helper.FirstCause("", batchv1.JobCondition{}, firstOf(pod)).Message
	diff(t, "message", "a"+strings.Repeat("é", 511), got)
	diff(t, "line", strings.Repeat("x", 200)+"...", lastLine(strings.Repeat("x", 201)))
}

func TestWhoseCauseIsLookedFor(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	type owned = []*batchv1.Job
	runs := begun(1, jobsetv1alpha2.TriggerStart, created(1))
	knows := begun(1, jobsetv1alpha2.TriggerStart, func(a *jobsetv1alpha2.Attempt) { a.FirstCause = &jobsetv1alpha2.FailureCause{Job: "js-w-1"} })
	finalOne := jobsetv1alpha2.FailurePolicyRule{Name: "r", Action: jobsetv1alpha2.FailJobSet, OnJobFailureReasons: []string{"fatal"}}
	for name, tc := range map[string]struct {
		set  []set
		jobs owned
		want string
	}{
		"nobody's when nothing has failed":             {set: []set{withAttempts(runs)}, jobs: owned{jobNamed("w", 0, ready)}},
		"that of the Job that failed first":            {set: []set{withAttempts(runs)}, jobs: owned{jobNamed("w", 0, failedWith("x", "", 2)), jobNamed("w", 1, failedWith("x", "", 1))}, want: "js-w-1 ends"},
		"that of the Job that decided":                 {set: []set{withAttempts(runs), failurePolicy(1, finalOne)}, jobs: owned{jobNamed("w", 0, failedWith("fatal", "", 2)), jobNamed("w", 1, failedWith("x", "", 1))}, want: "js-w-0 ends"},
		"that of the Job that is bound to fail":        {set: []set{withAttempts(runs)}, jobs: owned{jobNamed("w", 0, failureTarget("x", 2)), jobNamed("w", 1, failureTarget("x", 1))}, want: "js-w-1 dooms"},
		"nobody's once it is known":                    {set: []set{withAttempts(knows)}, jobs: owned{jobNamed("w", 0, failureTarget("x", 2))}},
		"nobody's at the end either once it is known":  {set: []set{withAttempts(knows)}, jobs: owned{jobNamed("w", 0, jobFailed)}},
		"nobody's in a suspended set":                  {set: []set{isSuspended, withAttempts(begun(1, "Start", ended(at(1), "Suspended", "")))}, jobs: owned{jobNamed("w", 0, failureTarget("x", 2))}},
		"nobody's when the time of the set is over":    {set: []set{withAttempts(runs), startedLongAgo}, jobs: owned{jobNamed("w", 0, ready)}},
		"nobody's when the pods are of an old attempt": {set: []set{withAttempts(runs), restarted(1, 1), failurePolicy(3)}, jobs: owned{jobNamed("w", 0, jobFailed)}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("w", 2))...), tc.jobs...)
			o.KeepAttempts, o.Gates.JobSetActiveDeadlineSeconds = true, true
			var got string
			if job := causeAsked(o); job != nil {
				got = job.Name + map[bool]string{true: " ends", false: " dooms"}[job.Decided]
				diff(t, "pods that hold a failure without having failed", true, job.InContainers)
			}
			diff(t, "Job", tc.want, got)
		})
	}
}

func TestMissingCauseIsAskedForOnce(t *testing.T) {
	job := jobNamed("w", 0, failureTarget("x", 1))
	js := newSet(with("w", 1), withAttempts(begun(1, jobsetv1alpha2.TriggerStart, created(1))))
	o := observe(js, job)
	o.KeepAttempts = true
	diff(t, "Job whose cause is missing", job.Name, causeAsked(o).Name)
	cause := &jobsetv1alpha2.FailureCause{Job: job.Name, Pod: "p"}
	known := observed(o, func(o *Observed) { o.Cause = hostplan.Of(cause) })
	diff(t, "Job whose cause is missing when it was looked up", (*FailedJob)(nil), Decide(known).Asks.FirstCause)
	diff(t, "recorded cause", cause, Decide(known).Status.Attempts[0].FirstCause)
	js.Status = *Decide(known).Status
	diff(t, "Job whose cause is missing when it is stored", (*FailedJob)(nil), causeAsked(o))
	healthy := observe(newSet(with("w", 1)), jobNamed("w", 0))
	healthy.KeepAttempts = true
	diff(t, "Job whose cause is missing when none fails", (*FailedJob)(nil), causeAsked(healthy))
}

func startedLongAgo(js *jobsetv1alpha2.JobSet) {
	js.Spec.ActiveDeadlineSeconds, js.Status.StartTime = ptr.To[int64](1), &before
}

func TestFirstCauseIsOnTheEndedAttempt(t *testing.T) {
	o := observe(newSet(with("w", 1), failurePolicy(1), withAttempts(begun(1, jobsetv1alpha2.TriggerStart))), jobNamed("w", 0, jobFailed))
	o.KeepAttempts = true
	cause := &jobsetv1alpha2.FailureCause{Job: "js-w-0", Reason: "x"}
	o.Cause = hostplan.Of(cause)
	p := Decide(o)
	diff(t, "number of attempts", 2, len(p.Status.Attempts))
	diff(t, "cause of the end of the first", cause, p.Status.Attempts[0].FirstCause)
	diff(t, "cause of the end of the second", (*jobsetv1alpha2.FailureCause)(nil), p.Status.Attempts[1].FirstCause)
	diff(t, "first event", Event{Type: "Warning", Reason: "FirstFailure", Note: "job js-w-0 failed (x)"}, p.Events[0])

	o.JobSet.Status.Attempts[0].FirstCause = &jobsetv1alpha2.FailureCause{Job: "js-w-1"}
	diff(t, "cause when another one is stored", "js-w-1", Decide(o).Status.Attempts[0].FirstCause.Job)
}
