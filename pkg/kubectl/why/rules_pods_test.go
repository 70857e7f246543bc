// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func unstructuredMap(name string, o *unstructured.Unstructured) map[string]*unstructured.Unstructured {
	return map[string]*unstructured.Unstructured{name: o}
}

// crashing gives the container of a pod a reason to wait.
func crashing(reason string, restarts int32, last ...corev1.ContainerStateTerminated) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		s := corev1.ContainerStatus{Name: "main", Image: "trainer:v404", RestartCount: restarts, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "because"}}}
		if len(last) > 0 {
			s.LastTerminationState.Terminated = &last[0]
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{s}
	}
}

func fails(exitCode int32, reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: reason, Message: "boom", FinishedAt: before(time.Minute)},
		}}}
	}
}

// failsBefore is for a pod whose container was started again after it failed, and then stopped.
func failsBefore(exitCode int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		stopped(pod)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name:                 "main",
			State:                corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Error", FinishedAt: before(time.Minute)}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: "Error", FinishedAt: before(3 * time.Minute)}},
		}}
	}
}

// stopped is for a pod that was stopped two minutes ago.
func stopped(pod *corev1.Pod) {
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(before(90*time.Second)), ptr.To[int64](30)
}

func podCases() map[string]diagnosisCase {
	lostNode := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown"}}}}
	overdue := func(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(before(3 * time.Minute)) }
	restarting := func(e *Evidence) {
		has(jobsetv1alpha2.JobSetRestarting, "RestartRequested", "restart requested by alice")(e)
		e.JobSet.Status.Restarts = 1
	}
	return map[string]diagnosisCase{
		"a node is lost": {
			evidence: healthy(pods(func(*corev1.Pod) {}), func(e *Evidence) { e.Nodes["node-1"] = lostNode }),
			want:     NodeLost, words: []string{"node node-1 is lost, with 2 unfinished pods"},
		},
		"a node is gone": {
			evidence: healthy(pods(func(*corev1.Pod) {}), func(e *Evidence) { e.Nodes["node-1"] = nil }),
			want:     NodeLost,
		},
		"terminating pods block a restart": {
			evidence: healthy(pods(overdue), restarting),
			want:     TerminatingPodsBlock, words: []string{"the restart waits for 2 pods", "3m ago"}, further: []Cause{Restarting},
		},
		"a finalizer of a pod blocks a restart": {
			evidence: healthy(pods(func(pod *corev1.Pod) { overdue(pod); pod.Finalizers = []string{"example.com/hold"} }), restarting),
			want:     FinalizerBlocksDeletion, words: []string{"the restart cannot continue"}, further: []Cause{TerminatingPodsBlock, Restarting},
		},
		"an image cannot be pulled": {
			evidence: healthy(pods(crashing("ImagePullBackOff", 0))),
			want:     ImagePull, words: []string{"trainer:v404", "ImagePullBackOff", "2 pods"},
		},
		"a container crashes": {
			evidence: healthy(pods(crashing("CrashLoopBackOff", 7, corev1.ContainerStateTerminated{ExitCode: 3, Message: "no file"}))),
			want:     CrashLoop, words: []string{"7 container restarts", "exit code 3", `"no file"`},
		},
		"a container is restarted for its memory": {
			evidence: healthy(pods(crashing("CrashLoopBackOff", 2, corev1.ContainerStateTerminated{ExitCode: 137, Reason: helper.ReasonOOMKilled}))),
			want:     OutOfMemory, words: []string{"memory", "2 container restarts"},
		},
		"a container cannot be configured": {
			evidence: healthy(pods(crashing("CreateContainerConfigError", 0))), want: ContainerConfig, words: []string{"because"},
		},
		"a volume cannot be mounted": {
			evidence: healthy(pods(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending }), warns("Pod", "uid-train-workers-0-0", "FailedMount", "no such export")),
			want:     VolumeMount, words: []string{"1 pod", "no such export"}, further: []Cause{PodsNotReady},
		},
		"pods are not ready for long": {
			evidence: healthy(pods(func(*corev1.Pod) {}), warns("Pod", "uid-train-workers-0-0", "Unhealthy", "Readiness probe failed")),
			want:     PodsNotReady, words: []string{"2 pods"},
		},
		"a Job tries again": {
			evidence: healthy(pods(fails(7, "Error")), func(e *Evidence) { e.Jobs[0].Status.Failed = 2 }),
			want:     ExitCode, words: []string{"exit code 7", `"boom"`, "2 failed pods (backoffLimit 6)"},
		},
		"a pod was evicted and its Job tries again": {
			evidence: healthy(pods(func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted" })),
			want:     Evicted,
		},
	}
}

func healthCases() map[string]diagnosisCase {
	ordered := func(e *Evidence) {
		builders.WithJobs("readers", 1, 1)(e.JobSet)
		notReadyYet(e)
		e.JobSet.Status.ReplicatedJobsStatus[0].Ready = 1
		e.Now = before(10*time.Minute - time.Second).Time
	}
	return map[string]diagnosisCase{
		"a set runs": {evidence: healthy(), want: Running, words: []string{"2 of 2 jobs ready", "attempt 1 (Start), ready for 9m"}},
		"a set without spec": {
			evidence: healthy(func(e *Evidence) { e.JobSet.Spec, e.Jobs, e.Pods = jobsetv1alpha2.JobSetSpec{}, nil, nil }, status(func(s *jobsetv1alpha2.JobSetStatus) { *s = jobsetv1alpha2.JobSetStatus{} })),
			want:     NoJobs, words: []string{"no replicatedJobs"},
		},
		"a set of upstream's server runs after restarts": {
			evidence: healthy(status(func(s *jobsetv1alpha2.JobSetStatus) { s.Attempts, s.Restarts = nil, 2 }), func(e *Evidence) {
				for _, job := range e.Jobs {
					job.Labels[jobsetv1alpha2.RestartsKey] = "2"
				}
			}),
			want: Running, words: []string{"keeps no history of attempts"},
		},
		"a dependency is not ready": {
			evidence: healthy(ordered, spec(func(s *jobsetv1alpha2.JobSetSpec) {
				s.ReplicatedJobs[1].DependsOn = []jobsetv1alpha2.DependsOn{{Name: "workers", Status: jobsetv1alpha2.DependencyReady}}
			})),
			want: DependsOn, words: []string{"readers waits until workers is ready: 1 of 2 jobs"},
		},
		"a dependency is not complete": {
			evidence: healthy(ordered, spec(func(s *jobsetv1alpha2.JobSetSpec) {
				s.ReplicatedJobs[1].DependsOn = []jobsetv1alpha2.DependsOn{{Name: "workers", Status: jobsetv1alpha2.DependencyComplete}}
			})),
			want: DependsOn, words: []string{"readers waits until workers is complete: 0 of 2 jobs"},
		},
		"the startup order is not reached": {
			evidence: healthy(ordered, spec(func(s *jobsetv1alpha2.JobSetSpec) {
				s.StartupPolicy = &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: jobsetv1alpha2.InOrder}
			}), has(jobsetv1alpha2.JobSetStartupPolicyInProgress, "InOrderStartupPolicyInProgress", "in progress")),
			want: StartupOrder, words: []string{"readers waits until workers has started", "1 of 2 jobs"},
		},
		"a restart is in progress": {
			evidence: healthy(without, has(jobsetv1alpha2.JobSetRestarting, "RestartRequested", "restart requested by alice"), status(func(s *jobsetv1alpha2.JobSetStatus) {
				s.Restarts = 1
				s.Attempts = append(s.Attempts, jobsetv1alpha2.Attempt{Number: 2, Trigger: jobsetv1alpha2.TriggerRequested, User: "alice", Reason: "new driver", RequestTime: microBefore(time.Second)})
			}), endedAs(jobsetv1alpha2.OutcomeRestarted, "alice", "new driver")),
			want: Restarting, words: []string{"attempt 2 (Requested) by alice", `"new driver"`},
		},
		"a set has just begun": {
			evidence: healthy(without, set(func(js *jobsetv1alpha2.JobSet) { js.CreationTimestamp = before(time.Second) })), want: Starting, words: []string{"0 of 2 jobs ready"},
		},
		"a set is complete": {
			evidence: healthy(has(jobsetv1alpha2.JobSetCompleted, "AllJobsCompleted", "done"), status(func(s *jobsetv1alpha2.JobSetStatus) {
				s.ReplicatedJobsStatus[0] = jobsetv1alpha2.ReplicatedJobStatus{Name: "workers", Succeeded: 2}
			})),
			want: Completed, words: []string{"completed 2m ago", "2 of 2 jobs"},
		},
	}
}

func failureCases() map[string]diagnosisCase {
	failedBecause := func(reason string) func(*Evidence) {
		return has(jobsetv1alpha2.JobSetFailed, reason, "jobset failed (first failed job: train-workers-1)")
	}
	first := func(reason string, exitCode *int32) func(*Evidence) {
		return status(func(s *jobsetv1alpha2.JobSetStatus) {
			a := &s.Attempts[len(s.Attempts)-1]
			a.Outcome, a.EndTime = jobsetv1alpha2.OutcomeFailed, microBefore(2*time.Minute)
			a.FirstCause = &jobsetv1alpha2.FailureCause{Job: "train-workers-1", Pod: "train-workers-1-0-x", Node: "node-7", Container: "main", Reason: reason, ExitCode: exitCode, Time: ptr.To(before(2 * time.Minute))}
		})
	}
	alike := func(e *Evidence) {
		without(e)
		first("Error", ptr.To(int32(9)))(e)
		e.JobSet.Status.Attempts = append(e.JobSet.Status.Attempts, e.JobSet.Status.Attempts[0], jobsetv1alpha2.Attempt{Number: 3, Trigger: jobsetv1alpha2.TriggerFailurePolicy})
		has(jobsetv1alpha2.JobSetRestarting, "DefaultFailurePolicy", "restarts")(e)
	}
	jobFailed := func(reason string) func(*Evidence) {
		return func(e *Evidence) {
			e.JobSet.Status.Attempts = nil
			e.Jobs[1].Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: reason, Message: "the job says so", LastTransitionTime: metav1.NewTime(now)}}
		}
	}
	return map[string]diagnosisCase{
		"a user cancelled the set": {
			evidence: healthy(has(jobsetv1alpha2.JobSetFailed, "Cancelled", "cancelled by alice: wrong data"), endedAs(jobsetv1alpha2.OutcomeCancelled, "alice", "wrong data")),
			want:     Cancelled, words: []string{"cancelled by alice: wrong data, 2m ago"},
		},
		"the set took too long": {
			evidence: healthy(failedBecause("DeadlineExceeded"), spec(func(s *jobsetv1alpha2.JobSetSpec) { s.ActiveDeadlineSeconds = ptr.To(int64(60)) })),
			want:     DeadlineExceeded, words: []string{"activeDeadlineSeconds of 60"},
		},
		"a Job took too long": {
			evidence: healthy(failedBecause("FailedJobs"), first("DeadlineExceeded", nil)), want: DeadlineExceeded, words: []string{"the job train-workers-1 ran longer"},
		},
		"a container used too much memory": {
			evidence: healthy(failedBecause("FailedJobs"), first("OOMKilled", ptr.To(int32(137)))), want: OutOfMemory, words: []string{"container main of pod train-workers-1-0-x on node node-7"},
		},
		"a container used too much memory in each restart": {
			evidence: healthy(failedBecause("ReachedMaxRestarts"), first("OOMKilled", ptr.To(int32(137)))), want: OutOfMemory, further: []Cause{MaxRestartsReached},
		},
		"a pod was evicted":        {evidence: healthy(failedBecause("FailedJobs"), first("Evicted", nil)), want: Evicted},
		"a pod made room":          {evidence: healthy(failedBecause("FailedJobs"), first("PreemptionByScheduler", nil)), want: Preempted},
		"a pod went with its node": {evidence: healthy(failedBecause("FailedJobs"), first("DeletionByTaintManager", nil)), want: NodeLost},
		"a container failed": {
			evidence: healthy(failedBecause("FailedJobs"), first("Error", ptr.To(int32(42)))), want: ExitCode, words: []string{"exit code 42", "failed 2m ago, after 0 restarts"},
		},
		"the restarts are used up": {
			evidence: healthy(failedBecause("ReachedMaxRestarts"), first("Error", ptr.To(int32(3))), spec(func(s *jobsetv1alpha2.JobSetSpec) {
				s.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 2}
			}), status(func(s *jobsetv1alpha2.JobSetStatus) { s.Restarts, s.RestartsCountTowardsMax, s.AddedRestarts = 3, 3, 1 })),
			want: MaxRestartsReached, words: []string{"3 of 3 restarts", "exit code 3"}, further: []Cause{ExitCode},
		},
		"a set fails again and again": {
			evidence: healthy(alike), want: ExitCode, words: []string{"exit code 9", "the last 2 attempts ended with the same failure"}, further: []Cause{Restarting},
		},
		"upstream's server says which Job failed, and its pod is left": {
			evidence: healthy(failedBecause("FailedJobs"), pods(fails(5, "Error")), jobFailed("BackoffLimitExceeded")), want: ExitCode, words: []string{"train-workers-1-0-abcde", "exit code 5"},
		},
		"upstream's server says which Job failed, and no pod is left": {
			evidence: healthy(failedBecause("FailedJobs"), func(e *Evidence) { e.Pods = nil }, jobFailed("BackoffLimitExceeded")), want: JobFailed, words: []string{"the job train-workers-1", "BackoffLimitExceeded"},
		},
		"a container failed that was started again": {
			evidence: healthy(failedBecause("FailedJobs"), pods(failsBefore(4)), jobFailed("BackoffLimitExceeded")), want: ExitCode, words: []string{"train-workers-1-0-abcde", "exit code 4"},
		},
		"a container failed only when it was stopped": {
			evidence: healthy(failedBecause("FailedJobs"), pods(fails(143, "Error")), pods(stopped), jobFailed("BackoffLimitExceeded")), want: JobFailed, words: []string{"the job train-workers-1", "BackoffLimitExceeded"},
		},
		"nothing is left of the failed Job": {
			evidence: healthy(failedBecause("FailedJobs"), without, status(func(s *jobsetv1alpha2.JobSetStatus) { s.Attempts = nil })), want: JobFailed, words: []string{"failed 2m ago"},
		},
	}
}
