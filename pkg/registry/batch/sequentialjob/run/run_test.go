// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/run"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func minute(n int) time.Time { return begin.Add(time.Duration(n) * time.Minute) }

func second(n int) *metav1.Time { return ptr.To(metav1.NewTime(minute(n))) }

func call(n int) actions.Call { return actions.Call{User: "ada", Now: minute(n)} }

// history is a sequence and what happens to it, minute by minute, as the controller and the actions write it. It has the steps fetch, a
// container; train, a JobSet of 8 pods; and report, a Job of 3 pods.
type history struct {
	t  *testing.T
	sj *batch.SequentialJob
}

func newHistory(t *testing.T) *history {
	pods := func(gpus string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container("main", gpus)}}}
	}
	sj := &batch.SequentialJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "seq", UID: "uid-1", CreationTimestamp: *second(0)}}
	fetch := container("fetch", "1")
	sj.Spec.Steps = []batch.SequentialJobStep{
		{Name: "fetch", Container: &fetch},
		{Name: "train", JobSet: &batch.JobSetTemplateSpec{Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{
			Name: "workers", Replicas: ptr.To[int32](2),
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4), Template: pods("8")}},
		}}}}},
		{Name: "report", Job: &batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](3), Template: pods("2")}}},
	}
	return &history{t, sj}
}

func container(name, gpus string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}}}
}

// start starts the next step, or the current one again after a retry.
func (h *history) start(n int) *history {
	s := &h.sj.Status
	index := int(ptr.Deref(s.Progress.CurrentIndex, 0))
	if s.StartTime == nil {
		s.StartTime = second(n)
	}
	if index == len(s.Steps) {
		step := h.sj.Spec.Steps[index]
		kind := batch.StepKindJob
		if step.JobSet != nil {
			kind = batch.StepKindJobSet
		}
		s.Steps = append(s.Steps, batch.SequentialJobStepStatus{Name: step.Name, Kind: kind})
	}
	entry := &s.Steps[index]
	if entry.State != batch.StepStarting { // a retry has counted the attempt
		entry.Attempts++
	}
	entry.State, entry.StartTime = batch.StepRunning, second(n)
	s.Progress.CurrentIndex, s.ActiveSince = ptr.To(int32(index)), second(n)
	return h
}

func (h *history) end(n int, state batch.StepState) *history {
	s := &h.sj.Status
	index := *s.Progress.CurrentIndex
	entry := &s.Steps[index]
	entry.State, entry.CompletionTime = state, second(n)
	s.ActiveSeconds += int64(minute(n).Sub(s.ActiveSince.Time).Seconds())
	s.ActiveSince = nil
	if state == batch.StepSucceeded {
		s.Progress.CompletedIndices = append(s.Progress.CompletedIndices, index)
		s.Progress.CurrentIndex = ptr.To(index + 1)
	}
	return h
}

func (h *history) succeed(n int) *history { return h.end(n, batch.StepSucceeded) }

func (h *history) finish(n int, condition, reason string) *history {
	h.sj.Status.CompletionTime = second(n)
	meta.SetStatusCondition(&h.sj.Status.Conditions, metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: "it is so", LastTransitionTime: *second(n),
	})
	return h
}

func (h *history) fail(n int) *history {
	h.end(n, batch.StepFailed).finish(n, batchv1alpha1.ConditionFailed, batchv1alpha1.ReasonJobFailed)
	entry := &h.sj.Status.Steps[*h.sj.Status.Progress.CurrentIndex]
	entry.Reason = "BackoffLimitExceeded"
	h.sj.Status.Progress.FailureReason = entry.Reason
	return h
}

func (h *history) cancel(n int) *history {
	h.t.Helper()
	if _, err := actions.Cancel(h.sj, &batch.SequentialJobActionSpec{Reason: "no"}, call(n)); err != nil {
		h.t.Fatal(err)
	}
	return h
}

func (h *history) retry(n int, from string) *history {
	h.t.Helper()
	if _, err := actions.Retry(h.sj, &batch.SequentialJobRetrySpec{FromStep: from}, call(n)); err != nil {
		h.t.Fatal(err)
	}
	return h.start(n)
}

// facts are what tells executions apart, with times in minutes.
type facts struct {
	Execution, Restarts int32
	State               archive.RunState
	Reason              string
	Begin, End, Ready   int
	GPUMinutes          int64
}

func factsOf(r *archive.Run) *facts {
	if r == nil {
		return nil
	}
	minutes := func(at metav1.MicroTime) int { return int(at.Sub(begin).Minutes()) }
	f := &facts{
		Execution: r.Object.Execution, Restarts: r.Restarts, State: r.State, Reason: r.Reason, Begin: minutes(r.BeginTime), End: minutes(r.EndTime),
		Ready: int(time.Duration(r.ReadyMilliseconds) * time.Millisecond / time.Minute),
	}
	for _, used := range r.Resources {
		f.GPUMinutes += used.AmountSeconds / 60
	}
	return f
}

func TestExecutions(t *testing.T) {
	now := minute(100)
	for name, tc := range map[string]struct {
		do   func(h *history)
		want *facts
	}{
		"a sequence that has not started":   {do: func(h *history) {}},
		"a sequence cancelled before that":  {do: func(h *history) { h.cancel(1) }},
		"a sequence that runs":              {do: func(h *history) { h.start(1) }, want: &facts{Execution: 1, Begin: 1, End: 100, Ready: 99, GPUMinutes: 99}},
		"a sequence whose first step fails": {do: func(h *history) { h.start(1).fail(5) }, want: &facts{Execution: 1, State: archive.RunFailed, Reason: "BackoffLimitExceeded", Begin: 1, End: 5, Ready: 4, GPUMinutes: 4}},
		"steps that are JobSets have runs of their own": {
			do: func(h *history) {
				h.start(1).succeed(5).start(5).succeed(25).start(25).succeed(30).finish(30, batchv1alpha1.ConditionComplete, "AllStepsCompleted")
			},
			want: &facts{Execution: 1, State: archive.RunCompleted, Reason: "AllStepsCompleted", Begin: 1, End: 30, Ready: 9, GPUMinutes: 4 + 5*3*2},
		},
		"a sequence that a user cancelled": {
			do:   func(h *history) { h.start(1).cancel(5) },
			want: &facts{Execution: 1, State: archive.RunCancelled, Reason: "Cancelled", Begin: 1, End: 5, Ready: 4, GPUMinutes: 4},
		},
		"a sequence that is being deleted while it runs": {
			do: func(h *history) {
				h.start(1)
				h.sj.DeletionTimestamp = second(11)
			},
			want: &facts{Execution: 1, Begin: 1, End: 100, Ready: 10, GPUMinutes: 10},
		},
		"a retry has its own time": {
			do:   func(h *history) { h.start(1).succeed(5).start(5).fail(10).retry(20, "").succeed(30).start(30).fail(32) },
			want: &facts{Execution: 2, Restarts: 1, State: archive.RunFailed, Reason: "BackoffLimitExceeded", Begin: 20, End: 32, Ready: 2, GPUMinutes: 12},
		},
		"a retry from an earlier step": {
			do:   func(h *history) { h.start(1).succeed(5).start(5).fail(10).retry(20, "fetch").fail(23) },
			want: &facts{Execution: 2, Restarts: 1, State: archive.RunFailed, Reason: "BackoffLimitExceeded", Begin: 20, End: 23, Ready: 3, GPUMinutes: 3},
		},
		"a placeholder": {do: func(h *history) {
			h.start(1)
			h.sj.Annotations = map[string]string{unreadable.Annotation: "damaged"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			tc.do(h)
			before := h.sj.DeepCopy()
			if diff := cmp.Diff(tc.want, factsOf(run.Describe(h.sj, now))); diff != "" {
				t.Errorf("run (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, h.sj); diff != "" {
				t.Errorf("the sequence has changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestExecutionsHaveNumbersOfTheirOwn: an execution has the same number however late it is asked for, and a later one a higher number,
// whatever step the sequence was retried from.
func TestExecutionsHaveNumbersOfTheirOwn(t *testing.T) {
	h, last := newHistory(t).start(0), int32(0)
	for i, from := range []string{"", "fetch", "train", "", "fetch", "report"} {
		at := 100 * (i + 1)
		for *h.sj.Status.Progress.CurrentIndex < 2 {
			h.succeed(at).start(at + 1)
		}
		h.fail(at + 2)
		soon, late := run.Describe(h.sj, minute(at+2)), run.Describe(h.sj, minute(at+50))
		if diff := cmp.Diff(soon, late); diff != "" {
			t.Fatalf("execution %d depends on the time (-soon +late):\n%s", i, diff)
		}
		if soon.Object.Execution <= last {
			t.Fatalf("execution %d has the number %d, and the one before %d", i, soon.Object.Execution, last)
		}
		last = soon.Object.Execution
		h.retry(at+60, from)
	}
}

func TestDescribe(t *testing.T) {
	h := newHistory(t).start(1).succeed(5).start(5)
	h.sj.Status.Steps[1].FirstCause = &jobset.FailureCause{Job: "seq-1-workers-0", Pod: "p", Node: "n1", Reason: "OOMKilled"}
	h.cancel(10)
	got := run.Describe(h.sj, minute(100))
	want := &archive.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: got.Name, UID: got.UID},
		Object: archive.RunObject{
			APIVersion: "batch.jobset-apiserver.io/v1alpha1", Kind: "SequentialJob", Name: "seq", UID: "uid-1", Execution: 1, CreationTime: *second(0),
		},
		State: archive.RunCancelled, Reason: "Cancelled", Message: "cancelled by ada: no", EndUser: "ada",
		BeginTime: metav1.NewMicroTime(minute(1)), EndTime: metav1.NewMicroTime(minute(10)), Pods: 8, Attempts: 1, ReadyMilliseconds: 4 * 60_000,
		Resources: []archive.ResourceTime{{Name: "nvidia.com/gpu", AmountSeconds: 4 * 60}},
		Failures:  []archive.RunFailure{{Attempt: 1, Child: "train", Pod: "p", Node: "n1", Reason: "OOMKilled"}},
		Children: []archive.RunChild{
			{Name: "fetch", Kind: "Job", State: "Succeeded", Wanted: 1, Succeeded: 1, Attempts: 1},
			{Name: "train", Kind: "JobSet", State: "Running", Wanted: 1, Ready: 1, Attempts: 1}, {Name: "report", Kind: "Job", Wanted: 1},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
}

func TestStepsAndFailuresAreBounded(t *testing.T) {
	sj := newHistory(t).sj
	sj.Spec.Steps = nil
	for i := range 150 {
		c := container(fmt.Sprintf("s%d", i), "1")
		sj.Spec.Steps = append(sj.Spec.Steps, batch.SequentialJobStep{Name: c.Name, Container: &c})
		sj.Status.Steps = append(sj.Status.Steps, batch.SequentialJobStepStatus{Name: c.Name, State: batch.StepFailed, Reason: "Error", Attempts: 1})
	}
	r := run.Describe(sj, minute(1))
	if len(r.Children) != 100 || len(r.Failures) != 100 || r.Failures[99].Child != "s149" {
		t.Errorf("%d children and %d failures: want 100, and the newest failures", len(r.Children), len(r.Failures))
	}
}
