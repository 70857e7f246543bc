// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/run"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func minute(n int) time.Time { return begin.Add(time.Duration(n) * time.Minute) }

func micro(n int) *metav1.MicroTime { return ptr.To(metav1.NewMicroTime(minute(n))) }

func call(n int) actions.Call { return actions.Call{User: "ada", Now: minute(n)} }

// history is a set and what happens to it, minute by minute, as the controller and the actions write it.
type history struct {
	t  *testing.T
	js *jobset.JobSet
}

func newHistory(t *testing.T) *history {
	js := builders.Hub("train", builders.WithHubJobs("leader", 1, 1), builders.WithHubJobs("workers", 2, 4, func(rj *jobset.ReplicatedJob) {
		rj.Template.Spec.Template.Spec.PriorityClassName = "batch"
		rj.Template.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	}))
	js.UID, js.CreationTimestamp = "uid-1", metav1.NewTime(begin)
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 2}
	return &history{t, js}
}

// start begins an attempt that is ready a minute later.
func (h *history) start(n int, trigger jobset.AttemptTrigger) *history {
	s := &h.js.Status
	number := int32(len(s.Attempts) + 1)
	if len(s.Attempts) > 0 {
		number = s.Attempts[len(s.Attempts)-1].Number + 1
	}
	s.Attempts = append(s.Attempts, jobset.Attempt{Number: number, Trigger: trigger, Scope: jobset.ScopeJobSet, RequestTime: micro(n)})
	s.Attempts = s.Attempts[max(0, len(s.Attempts)-jobset.MaxAttempts):]
	return h.ready(n + 1)
}

func (h *history) ready(n int) *history {
	h.js.Status.Attempts[len(h.js.Status.Attempts)-1].ReadyTime = micro(n)
	return h
}

func (h *history) end(n int, outcome jobset.AttemptOutcome) *history {
	a := &h.js.Status.Attempts[len(h.js.Status.Attempts)-1]
	a.EndTime, a.Outcome = micro(n), outcome
	h.js.Status.ReadyMilliseconds += a.EndTime.Sub(a.ReadyTime.Time).Milliseconds()
	if outcome == jobset.OutcomeFailed || outcome == jobset.OutcomeRestarted {
		a.FirstCause = &jobset.FailureCause{Job: "train-workers-0", Pod: "p", Node: "n1", ExitCode: ptr.To[int32](1), Reason: "Error"}
	}
	return h
}

func (h *history) finish(n int, condition, reason string) *history {
	meta.SetStatusCondition(&h.js.Status.Conditions, metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: "it is so", LastTransitionTime: metav1.NewTime(minute(n)),
	})
	h.js.Status.TerminalState = condition
	return h
}

func (h *history) fail(n int) *history {
	return h.end(n, jobset.OutcomeFailed).finish(n, jobset.ConditionFailed, "FailedJobs")
}

func (h *history) restart(n int) *history {
	h.js.Status.Restarts++
	return h.end(n, jobset.OutcomeRestarted).start(n, jobset.TriggerFailurePolicy)
}

func (h *history) retry(n int) *history {
	h.t.Helper()
	if _, err := actions.Retry(h.js, &batch.JobSetRetrySpec{}, call(n)); err != nil {
		h.t.Fatal(err)
	}
	if !ptr.Deref(h.js.Spec.Suspend, false) {
		h.ready(n + 1)
	}
	return h
}

func (h *history) cancel(n int) *history {
	h.t.Helper()
	if _, err := actions.Cancel(h.js, &batch.JobSetActionSpec{Reason: "no"}, call(n)); err != nil {
		h.t.Fatal(err)
	}
	return h
}

func (h *history) suspend(n int) *history {
	h.js.Spec.Suspend = ptr.To(true)
	return h.end(n, jobset.OutcomeSuspended)
}

// resume is seen by the controller two seconds later.
func (h *history) resume(n int) *history {
	h.js.Spec.Suspend = ptr.To(false)
	if meta.IsStatusConditionTrue(h.js.Status.Conditions, jobset.ConditionRetried) {
		meta.SetStatusCondition(&h.js.Status.Conditions, metav1.Condition{
			Type: jobset.ConditionRetried, Status: metav1.ConditionFalse, Reason: "ResumeJobs", LastTransitionTime: metav1.NewTime(minute(n).Add(2 * time.Second)),
		})
	}
	return h.start(n, jobset.TriggerResume)
}

// facts are what tells executions apart.
type facts struct {
	Execution, Attempts, Restarts int32
	State                         archive.RunState
	Begin, End                    int // minutes
	Ready                         int
	Failures                      int
}

func factsOf(r *archive.Run) *facts {
	if r == nil {
		return nil
	}
	minutes := func(at metav1.MicroTime) int { return int(at.Sub(begin).Minutes()) }
	return &facts{
		Execution: r.Object.Execution, Attempts: r.Attempts, Restarts: r.Restarts, State: r.State, Begin: minutes(r.BeginTime), End: minutes(r.EndTime),
		Ready: int(time.Duration(r.ReadyMilliseconds) * time.Millisecond / time.Minute), Failures: len(r.Failures),
	}
}

func TestExecutions(t *testing.T) {
	now := minute(100)
	for name, tc := range map[string]struct {
		do   func(h *history)
		want *facts
	}{
		"a set that has not started": {do: func(h *history) {}},
		"a set that was cancelled in its queue": {do: func(h *history) {
			h.js.Spec.Suspend = ptr.To(true)
			h.cancel(1)
		}},
		"a set that runs": {
			do:   func(h *history) { h.start(0, jobset.TriggerStart) },
			want: &facts{Execution: 1, Attempts: 1, End: 100, Ready: 99},
		},
		"a set that is being deleted while it runs": {
			do: func(h *history) {
				h.start(0, jobset.TriggerStart)
				h.js.DeletionTimestamp = ptr.To(metav1.NewTime(minute(50)))
			},
			want: &facts{Execution: 1, Attempts: 1, End: 100, Ready: 49},
		},
		"a set that completed after a restart": {
			do: func(h *history) {
				h.start(0, jobset.TriggerStart).restart(5).end(10, jobset.OutcomeCompleted).finish(10, jobset.ConditionCompleted, "AllJobsCompleted")
			},
			want: &facts{Execution: 1, Attempts: 2, Restarts: 1, State: archive.RunCompleted, End: 10, Ready: 8, Failures: 1},
		},
		"a set that failed": {
			do:   func(h *history) { h.start(0, jobset.TriggerStart).restart(5).fail(10) },
			want: &facts{Execution: 1, Attempts: 2, Restarts: 1, State: archive.RunFailed, End: 10, Ready: 8, Failures: 2},
		},
		"a set that a user cancelled": {
			do:   func(h *history) { h.start(0, jobset.TriggerStart).cancel(10) },
			want: &facts{Execution: 1, Attempts: 1, State: archive.RunCancelled, End: 10, Ready: 9},
		},
		"a retried set that runs": {
			do:   func(h *history) { h.start(0, jobset.TriggerStart).restart(5).fail(10).retry(20) },
			want: &facts{Execution: 3, Attempts: 1, Begin: 20, End: 100, Ready: 79},
		},
		"a retried set that failed again": {
			do:   func(h *history) { h.start(0, jobset.TriggerStart).fail(10).retry(20).restart(25).fail(30) },
			want: &facts{Execution: 2, Attempts: 2, Restarts: 1, State: archive.RunFailed, Begin: 20, End: 30, Ready: 8, Failures: 2},
		},
		"a set that was retried while it was suspended, and not resumed": {
			do: func(h *history) { h.start(0, jobset.TriggerStart).suspend(5).cancel(10).retry(20) },
		},
		"a set that was retried while it was suspended, and cancelled again": {
			do: func(h *history) { h.start(0, jobset.TriggerStart).suspend(5).cancel(10).retry(20).cancel(30) },
		},
		"a set that was retried while it was suspended, and resumed": {
			do:   func(h *history) { h.start(0, jobset.TriggerStart).suspend(5).cancel(10).retry(20).resume(30).fail(40) },
			want: &facts{Execution: 2, Attempts: 1, State: archive.RunFailed, Begin: 30, End: 40, Ready: 9, Failures: 1},
		},
		"a suspension is no other execution": {
			do:   func(h *history) { h.start(0, jobset.TriggerStart).suspend(5).resume(20).fail(30) },
			want: &facts{Execution: 1, Attempts: 2, State: archive.RunFailed, End: 30, Ready: 13, Failures: 1},
		},
		"a set whose first attempts are not listed any more": {
			do: func(h *history) {
				h.start(0, jobset.TriggerStart)
				for n := 2; n <= 24; n += 2 {
					h.restart(n)
				}
				h.fail(26)
			},
			want: &facts{Execution: 4, Attempts: 13, Restarts: 12, State: archive.RunFailed, Begin: 6, End: 26, Ready: 13, Failures: 10},
		},
		"a set without attempts": {
			do: func(h *history) {
				h.js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "workers", Succeeded: 2}}
				h.finish(10, jobset.ConditionCompleted, "AllJobsCompleted")
			},
			want: &facts{Execution: 1, Attempts: 1, State: archive.RunCompleted, End: 10},
		},
		"a placeholder": {do: func(h *history) {
			h.start(0, jobset.TriggerStart)
			h.js.Annotations = map[string]string{unreadable.Annotation: "damaged"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			tc.do(h)
			before := h.js.DeepCopy()
			if diff := cmp.Diff(tc.want, factsOf(run.Describe(h.js, now))); diff != "" {
				t.Errorf("run (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, h.js); diff != "" {
				t.Errorf("the set has changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestExecutionsHaveNumbersOfTheirOwn: an execution has the same number however late it is asked for, and a later one a higher number, also
// when attempts are dropped from the list.
func TestExecutionsHaveNumbersOfTheirOwn(t *testing.T) {
	for restarts := range 13 {
		h, last := newHistory(t).start(0, jobset.TriggerStart), int32(0)
		for execution := range 6 {
			at := 1000 * execution
			for i := range restarts {
				h.restart(at + 10 + i)
			}
			h.fail(at + 500)
			soon, late := run.Describe(h.js, minute(at+500)), run.Describe(h.js, minute(at+900))
			if diff := cmp.Diff(soon, late); diff != "" {
				t.Fatalf("%d restarts: execution %d depends on the time (-soon +late):\n%s", restarts, execution, diff)
			}
			if soon.Object.Execution <= last {
				t.Fatalf("%d restarts: execution %d has the number %d, and the one before %d", restarts, execution, soon.Object.Execution, last)
			}
			last = soon.Object.Execution
			h.retry(at + 999)
		}
	}
}

func TestDescribe(t *testing.T) {
	h := newHistory(t).start(0, jobset.TriggerStart).restart(5).cancel(10)
	h.js.Annotations = map[string]string{jobset.CheckpointStepKey: "7", "other": "x"}
	h.js.Status.GoodMilliseconds = 60_000
	h.js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "workers", Ready: 1, Failed: 1}}
	got := run.Describe(h.js, minute(100))
	want := &archive.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: got.Name, UID: got.UID, Annotations: map[string]string{jobset.CheckpointStepKey: "7"}},
		Object: archive.RunObject{
			APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "train", UID: "uid-1", Execution: 1, CreationTime: metav1.NewTime(begin),
		},
		State: archive.RunCancelled, Reason: "Cancelled", Message: "cancelled by ada: no", EndUser: "ada", PriorityClass: "batch",
		BeginTime: *micro(0), EndTime: *micro(10), Pods: 9, Attempts: 2, Restarts: 1, ReadyMilliseconds: 8 * 60_000, GoodMilliseconds: ptr.To[int64](60_000),
		Resources: []archive.ResourceTime{{Name: "nvidia.com/gpu", AmountSeconds: 8 * 8 * 8 * 60}},
		Failures: []archive.RunFailure{{
			Attempt: 1, Child: "train-workers-0", Pod: "p", Node: "n1", ExitCode: ptr.To[int32](1), Reason: "Error",
		}},
		Children: []archive.RunChild{{Name: "leader", Kind: "Job", Wanted: 1}, {Name: "workers", Kind: "Job", Wanted: 2, Ready: 1, Failed: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
}
