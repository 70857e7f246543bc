// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// runningSequence is a sequence of three containers whose second runs since ten minutes.
func runningSequence() *Evidence {
	sj := builders.SequentialJob("etl", builders.WithContainers("extract", "transform", "load"),
		builders.Started(batchv1alpha1.StepSucceeded),
		builders.Started(batchv1alpha1.StepRunning, func(s *batchv1alpha1.SequentialJobStepStatus) { s.StartTime = ptr.To(before(10 * time.Minute)) }))
	sj.CreationTimestamp = before(time.Hour)
	job := builders.StepJob(sj, 1, func(job *batchv1.Job) { job.Status.Active, job.Status.Ready = 1, ptr.To[int32](1) })
	pod := builders.StepPod(job, "abcde", func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: before(10 * time.Minute)})
	})
	healthy := healthy()
	return &Evidence{
		of: sequenceKind(), Namespace: "team", Name: "etl", Now: healthy.Now, Sequence: sj, Jobs: []*batchv1.Job{job}, Pods: []*corev1.Pod{pod},
		Leases: healthy.Leases, LeasesRead: true, Nodes: map[string]*corev1.Node{}, TakenJobs: map[string]*batchv1.Job{},
	}
}

// ends records that the current step failed, and the condition that ended the sequence.
func ends(reason, message string) func(*Evidence) {
	return func(e *Evidence) {
		e.Sequence.Status.Steps[1].State = batchv1alpha1.StepFailed
		tells(batchv1alpha1.ConditionFailed, metav1.ConditionTrue, reason, message)(e)
	}
}

// tells sets a condition of the sequence.
func tells(conditionType string, status metav1.ConditionStatus, reason, message string) func(*Evidence) {
	return func(e *Evidence) {
		meta.SetStatusCondition(&e.Sequence.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: before(2 * time.Minute),
		})
	}
}

// acts records the last action of a user.
func acts(action batchv1alpha1.SequentialJobAction) func(*Evidence) {
	return func(e *Evidence) {
		at := metav1.NewMicroTime(before(5 * time.Minute).Time)
		e.Sequence.Status.LastAction = &batchv1alpha1.SequentialJobLastAction{Action: action, User: "alice", Reason: "disk is full", Time: &at, Step: "transform", Attempt: 2}
	}
}

// starting makes the current step one whose pods do not run.
func starting(change func(*corev1.Pod)) func(*Evidence) {
	return func(e *Evidence) {
		e.Jobs[0].Status.Ready = ptr.To[int32](0)
		e.Pods[0].Status = corev1.PodStatus{Phase: corev1.PodPending}
		change(e.Pods[0])
	}
}

// queuedStep makes the Job of the current step one that waits in a queue.
func queuedStep(e *Evidence) {
	e.Sequence.Labels = map[string]string{helper.QueueKey: "gpu"}
	e.Jobs[0].Labels[helper.QueueKey], e.Jobs[0].Spec.Suspend = "gpu", ptr.To(true)
	e.Sequence.Status.Steps[1].State = batchv1alpha1.StepWaiting
	e.Pods = nil
}

// sequenceCase is how a sequence differs from the running one, and what has to be found first in it.
type sequenceCase struct {
	change      []func(*Evidence)
	want        Cause
	wantSummary string
	wantCommand string
}

func sequenceCases() map[string]sequenceCase {
	exitCode := func(e *Evidence) {
		ends("JobFailed", "Job 1 failed: BackoffLimitExceeded")(e)
		e.Sequence.Status.Progress.FailureReason = "BackoffLimitExceeded"
		e.Sequence.Status.Steps[1].FirstCause = &jobsetv1alpha2.FailureCause{
			Job: "etl-1", Pod: "etl-1-abcde", Container: "transform", Node: "node-1", ExitCode: ptr.To[int32](3), Message: "no such table",
		}
	}
	return map[string]sequenceCase{
		"a running step": {want: Running, wantSummary: "runs: step 2/3 (transform), began 10m ago", wantCommand: "tree sqj/etl"},
		"a second attempt": {change: []func(*Evidence){acts(batchv1alpha1.ActionRestart), func(e *Evidence) {
			e.Sequence.Status.Steps[1].Attempts = 2
			e.Jobs[0].Labels[batchv1alpha1.StepAttemptKey] = "2"
		}},
			want: Running, wantSummary: `runs: step 2/3 (transform), attempt 2 (restart by alice: "disk is full"), began 10m ago`},
		"a step failed with an exit code": {change: []func(*Evidence){exitCode}, want: ExitCode, wantCommand: "retry sqj/etl --from-step extract",
			wantSummary: `container transform of pod etl-1-abcde on node node-1 ended with exit code 3: "no such table"; step 2/3 (transform) failed 2m ago (BackoffLimitExceeded), and with it the sequence`},
		"a step failed, and nothing is known of its pods": {change: []func(*Evidence){ends("JobFailed", "Job 1 failed: PodFailurePolicy")}, want: JobFailed,
			wantSummary: "step 2/3 (transform) failed 2m ago, and with it the sequence", wantCommand: "retry sqj/etl"},
		"cancelled": {change: []func(*Evidence){ends("Cancelled", "cancelled by alice"), acts(batchv1alpha1.ActionCancel)}, want: Cancelled,
			wantSummary: `cancelled by alice 2m ago: "disk is full"`, wantCommand: "retry sqj/etl"},
		"the deadline is over": {change: []func(*Evidence){ends("DeadlineExceeded", "too long"), func(e *Evidence) { e.Sequence.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }},
			want: DeadlineExceeded, wantSummary: "longer than its activeDeadlineSeconds of 60", wantCommand: "timeline sqj/etl"},
		"suspended by an action": {change: []func(*Evidence){acts(batchv1alpha1.ActionSuspend), func(e *Evidence) { e.Sequence.Spec.Suspend = ptr.To(true) }},
			want: SuspendedByUser, wantSummary: `suspended by alice 5m ago: "disk is full"`, wantCommand: "resume sqj/etl"},
		"waits for quota": {change: []func(*Evidence){queuedStep, func(e *Evidence) {
			e.Kueue = Kueue{Served: true, WorkloadRead: true, Workload: workloadWaiting("insufficient unused quota for cpu")}
		}}, want: QuotaNotReserved, wantSummary: "the queue gpu has no quota for the sequence: insufficient unused quota for cpu", wantCommand: "describe workload job-etl-1"},
		"a step that runs in a worker cluster": {change: []func(*Evidence){queuedStep, func(e *Evidence) {
			e.Jobs[0].Spec.ManagedBy, e.Jobs[0].Spec.Suspend, e.Pods = ptr.To("kueue.x-k8s.io/multikueue"), ptr.To(false), nil
			e.Kueue = Kueue{Served: true, WorkloadRead: true, Workload: kueueObject("Workload", "job-etl-1", nil, kueueCondition("QuotaReserved", "True", ""))}
			e.Kueue.Workload.Object["status"].(map[string]any)["clusterName"] = "east"
		}}, want: ManagedByOther, wantSummary: "step 2/3 (transform): Kueue runs the job etl-1 in the cluster east", wantCommand: "describe job etl-1  # in the cluster east"},
		"a queue without Kueue": {change: []func(*Evidence){queuedStep, tells(batchv1alpha1.ConditionResourcesUnavailable, metav1.ConditionTrue, "QueueUnavailable", "no Kueue")},
			want: QueueMissing, wantSummary: "the sequence waits for the queue gpu, but the cluster does not serve kueue.x-k8s.io: Kueue is not installed"},
		"the controller does not run": {change: []func(*Evidence){func(e *Evidence) { e.Leases = []coordinationv1.Lease{{}} }}, want: ControllerNotRunning,
			wantSummary: "the controller of SequentialJobs does not run, so nothing happens to the sequence"},
		"held after a restore": {change: []func(*Evidence){withoutJob, tells("Held", metav1.ConditionTrue, "RestoredFromBackup", "the store was restored")},
			want: HeldAfterRestore, wantSummary: "held until a user resumes or deletes it: the store was restored", wantCommand: "resume sqj/etl"},
		"another controller": {change: []func(*Evidence){func(e *Evidence) { e.Sequence.Spec.ManagedBy = ptr.To("example.com/mine") }}, want: ManagedByOther,
			wantSummary: "the controller example.com/mine manages the sequence"},
		"the controller fails": {change: []func(*Evidence){tells(batchv1alpha1.ConditionFailed, metav1.ConditionTrue, "ReconciliationError", "Failed to reconcile: no answer")},
			want: ReconciliationFailed, wantSummary: "tries again: Failed to reconcile: no answer"},
		"the name is taken": {change: []func(*Evidence){withoutJob, tells(batchv1alpha1.ConditionAvailable, metav1.ConditionFalse, "NameConflict", "taken"), func(e *Evidence) {
			e.TakenJobs["etl-1"] = &batchv1.Job{}
		}}, want: JobNameTaken, wantSummary: "the sequence needs the name of the job etl-1, which exists and has no owner; the sequence waits until that job is deleted"},
		"a JobSet that the server cannot read": {change: []func(*Evidence){tells(batchv1alpha1.ConditionProgressing, metav1.ConditionFalse, "ChildUnreadable",
			"The server cannot read JobSet etl-1, so the sequence stays as it is until an administrator repairs or removes it: damaged")}, want: ChildUnreadable,
			wantSummary: "The server cannot read JobSet etl-1", wantCommand: "jobset doctor"},
		"pods of an earlier step run": {change: []func(*Evidence){withoutJob, tells(batchv1alpha1.ConditionProgressing, metav1.ConditionFalse, "WaitingForPods",
			"Job 1 starts once the pods of earlier jobs have ended: pod etl-0-x on node node-1 still runs")}, want: EarlierStepRuns, wantCommand: "get pods -o wide -l batch.jobset-apiserver.io/sequentialjob-name=etl",
			wantSummary: "step 2/3 (transform) waits: Job 1 starts once the pods of earlier jobs have ended: pod etl-0-x on node node-1 still runs"},
		"Kueue suspends what names no queue": {change: []func(*Evidence){tells(batchv1alpha1.ConditionProgressing, metav1.ConditionFalse, "SuspendedByOthers",
			"Job 1 waits: kueue suspends job etl-1 again whenever it is resumed; the controller resumes it again at 2026-01-01T00:01:03Z")}, want: JobSuspendedByOther,
			wantCommand: "label job/etl-1 kueue.x-k8s.io/queue-name=QUEUE", wantSummary: "step 2/3 (transform): Job 1 waits: kueue suspends job etl-1 again whenever it is resumed"},
		"another party deletes the Job": {change: []func(*Evidence){withoutJob, tells(batchv1alpha1.ConditionAvailable, metav1.ConditionFalse, "UndoneByOthers",
			"Job 1 could not be created: job etl-1 was deleted 3 times within a minute, each time after the controller had created it; the API does not say who deletes it, the audit log does; the controller creates it again at 2026-01-01T00:01:03Z")}, want: ChildUndoneByOther, wantSummary: "job etl-1 was deleted 3 times within a minute", wantCommand: "events --for sequentialjob/etl"},
		"another party removes the label of the Job": {change: []func(*Evidence){tells(batchv1alpha1.ConditionAvailable, metav1.ConditionFalse, "UndoneByOthers",
			"Changes of job 1 are noticed late: another party removed or changed the label batch.jobset-apiserver.io/sequentialjob-uid of job etl-1 3 times within a minute, each time after the controller had set it; the API does not say who does, the audit log does; the controller sets it again at 2026-01-01T00:01:03Z")},
			want: ChildUndoneByOther, wantSummary: "removed or changed the label batch.jobset-apiserver.io/sequentialjob-uid of job etl-1", wantCommand: "events --for sequentialjob/etl"},
		"the API refuses the Job": {change: []func(*Evidence){withoutJob, tells(batchv1alpha1.ConditionAvailable, metav1.ConditionFalse, "JobCreationFailed",
			`Job.batch "etl-1" is invalid: spec.containers[1].image: Required value`)}, want: JobTemplateRefused, wantSummary: "the API refuses the job etl-1: spec.containers[1].image: Required value", wantCommand: "edit sequentialjob etl"},
		"a quota refuses the Job": {change: []func(*Evidence){withoutJob, tells(batchv1alpha1.ConditionResourcesUnavailable, metav1.ConditionTrue, "QuotaExceeded",
			"exceeded quota: jobs, requested: count/jobs.batch=1")}, want: JobRefusedByQuota, wantSummary: "a quota refuses the job etl-1: quota jobs", wantCommand: "describe resourcequota"},
		"the API is overloaded": {change: []func(*Evidence){withoutJob, tells(batchv1alpha1.ConditionResourcesUnavailable, metav1.ConditionTrue, "ClusterOverloaded", "too many requests")},
			want: ClusterOverloaded, wantSummary: "the API does not take the job etl-1, and the controller tries again: too many requests"},
		"a pod finds no node": {change: []func(*Evidence){starting(func(pod *corev1.Pod) {
			pod.Spec.NodeName = ""
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu."}}
		})}, want: UnschedulableResources, wantSummary: "1 pod finds no node with enough room: 3 nodes: Insufficient cpu"},
		"an image cannot be pulled": {change: []func(*Evidence){starting(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "nope", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
		})}, want: ImagePull, wantSummary: "the image nope cannot be pulled"},
		"deleted, and the controller does not run": {change: []func(*Evidence){deleted, func(e *Evidence) { e.Leases = nil }}, want: FinalizerBlocksDeletion,
			wantSummary: "keeps it until the controller has stopped the child, and the controller does not run", wantCommand: "patch sequentialjob etl"},
		"deleted": {change: []func(*Evidence){deleted}, want: Deleting, wantSummary: "waits until its child is gone"},
		"completed": {change: []func(*Evidence){tells(batchv1alpha1.ConditionComplete, metav1.ConditionTrue, "AllJobsCompleted", "all")}, want: Completed,
			wantSummary: "completed 2m ago: 3 steps"},
	}
}

func TestCausesOfSequences(t *testing.T) {
	for name, tc := range sequenceCases() {
		t.Run(name, func(t *testing.T) {
			e := runningSequence()
			for _, change := range tc.change {
				change(e)
			}
			r := diagnoseSequence(e)
			first := r.Findings[0]
			if first.Cause != tc.want || !strings.Contains(first.Summary, tc.wantSummary) || !strings.Contains(strings.Join(first.Commands, "\n"), tc.wantCommand) {
				t.Errorf("got %s: %s\n%v\nwant %s: %s", first.Cause, first.Summary, first.Commands, tc.want, tc.wantSummary)
			}
		})
	}
}

func withoutJob(e *Evidence) {
	e.Jobs, e.Pods = nil, nil
	e.Sequence.Status.Steps[1].State = batchv1alpha1.StepStarting
}

func deleted(e *Evidence) {
	e.Sequence.DeletionTimestamp, e.Sequence.Finalizers = ptr.To(before(time.Minute)), []string{batchv1alpha1.SequentialJobFinalizer}
}

func workloadWaiting(message string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "job-etl-1"},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}}},
	}}
}

func TestCauseOfJobSetStep(t *testing.T) {
	child := healthy()
	notReadyYet(child)
	for _, pod := range child.Pods {
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", Image: "nope", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}}
	}
	sj := builders.SequentialJob("nightly", builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "train", JobSet: &batchv1alpha1.JobSetTemplateSpec{}}),
		builders.Started(batchv1alpha1.StepRunning))
	e := runningSequence()
	e.Name, e.Sequence, e.Child, e.Jobs, e.Pods = "nightly", sj, child, nil, nil
	first := diagnoseSequence(e).Findings[0]
	if first.Cause != ImagePull || !strings.HasPrefix(first.Summary, "step 1/1 (train): the image nope cannot be pulled") {
		t.Errorf("got %s: %s", first.Cause, first.Summary)
	}
}

func TestRunningJobSetStepNeedsNoEvents(t *testing.T) {
	sj := builders.SequentialJob("nightly", builders.WithStep(batchv1alpha1.SequentialJobStep{Name: "train", JobSet: &batchv1alpha1.JobSetTemplateSpec{}}),
		builders.Started(batchv1alpha1.StepRunning))
	e := runningSequence()
	e.Name, e.Sequence, e.Child, e.Jobs, e.Pods = "nightly", sj, healthy(), nil, nil
	e.NotLookedAt = []Gap{{"events", reasonForbidden}}
	if first := diagnoseSequence(e).Findings[0]; first.Cause != Running {
		t.Errorf("got %s: %s", first.Cause, first.Summary)
	}
}

func TestLoadOfASequence(t *testing.T) {
	e := runningSequence()
	e.Sequence.Namespace, e.Jobs[0].Namespace, e.Pods[0].Namespace = "team", "team", "team"
	w := newEnv(t, e)
	if err := w.jobSets.Tracker().Add(e.Sequence); err != nil {
		t.Fatal(err)
	}
	got, err := load(context.Background(), w.Clients, sequenceKind(), "etl")
	if err != nil || len(got.Jobs) != 1 || len(got.Pods) != 1 {
		t.Fatalf("got %+v, error %v", got, err)
	}
	missing, err := SequentialJob(context.Background(), w.Clients, "etk")
	if err != nil || missing.Findings[0].Cause != NotFound || !strings.Contains(strings.Join(missing.Findings[0].Commands, "\n"), "why sqj/etl") {
		t.Errorf("a sequence that does not exist: %+v, error %v", missing, err)
	}
}
