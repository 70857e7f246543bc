// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// keptLines returns a logger at the verbosity of the manifests, and what it has logged.
func keptLines(t *testing.T) (klog.Logger, func() []string) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
	return logger, func() (lines []string) {
		sink, ok := logger.GetSink().(ktesting.Underlier)
		if !ok {
			t.Fatal("the logger keeps no lines")
		}
		for _, entry := range sink.GetBuffer().Data() {
			line := entry.Message
			for i := 0; i+1 < len(entry.ParameterKVList); i += 2 {
				line += fmt.Sprintf(" %v=%v", entry.ParameterKVList[i], entry.ParameterKVList[i+1])
			}
			lines = append(lines, line)
		}
		return lines
	}
}

// TestTransitionsAreLogged leads a set through its life. Each step that is not named below costs no line.
func TestTransitionsAreLogged(t *testing.T) {
	logger, lines := keptLines(t)
	js := setWith()
	step := func(change func(*jobsetv1alpha2.JobSet), want ...string) {
		t.Helper()
		next, before := js.DeepCopy(), len(lines())
		change(next)
		logTransitions(logger, js, next)
		logTransitions(logger, next, next) // as after a restart of the server
		diff(t, "lines", want, lines()[before:])
		js = next
	}
	begins := func(a jobsetv1alpha2.Attempt) func(*jobsetv1alpha2.JobSet) {
		return func(js *jobsetv1alpha2.JobSet) {
			if n := len(js.Status.Attempts); n > 0 {
				js.Status.Attempts[n-1].EndTime = a.RequestTime
			}
			js.Status.Attempts = append(js.Status.Attempts, a)
		}
	}
	condition := func(conditionType, reason, message string, status metav1.ConditionStatus, second int) func(*jobsetv1alpha2.JobSet) {
		return func(js *jobsetv1alpha2.JobSet) {
			meta.SetStatusCondition(&js.Status.Conditions, metav1.Condition{
				Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(begin.Add(time.Duration(second) * time.Second)),
			})
		}
	}
	step(begins(jobsetv1alpha2.Attempt{Number: 1, Trigger: "Start", RequestTime: after(0)}), "JobSet started jobset=ns/js attempt=1 trigger=Start")
	step(func(js *jobsetv1alpha2.JobSet) { js.Status.Attempts[0].ReadyTime = after(3) })
	step(begins(jobsetv1alpha2.Attempt{Number: 2, Trigger: "FailurePolicy", Rule: "r", Reason: "applying", RequestTime: after(90)}),
		"JobSet restarted jobset=ns/js attempt=2 trigger=FailurePolicy rule=r reason=applying duration=1m30s")
	step(begins(jobsetv1alpha2.Attempt{Number: 3, Trigger: "Requested", ReplicatedJob: "w", User: "ada", RequestTime: after(95)}),
		"JobSet restarted jobset=ns/js attempt=3 trigger=Requested replicatedJob=w user=ada duration=5s")
	step(begins(jobsetv1alpha2.Attempt{Number: 4, Trigger: "Preemption", RequestTime: after(99)}), "JobSet started jobset=ns/js attempt=4 trigger=Preemption duration=4s")
	step(condition("Failed", "ReachedMaxRestarts", "jobset failed", metav1.ConditionTrue, 120),
		"JobSet failed jobset=ns/js attempt=4 reason=ReachedMaxRestarts message=jobset failed duration=2m0s")
	step(func(js *jobsetv1alpha2.JobSet) { meta.RemoveStatusCondition(&js.Status.Conditions, "Failed") })
	step(begins(jobsetv1alpha2.Attempt{Number: 5, Trigger: "Retry", User: "ada", RequestTime: after(130)}), "JobSet restarted jobset=ns/js attempt=5 trigger=Retry user=ada duration=31s")
	step(condition("Completed", "AllJobsCompleted", "jobset completed successfully", metav1.ConditionTrue, 3600),
		"JobSet completed jobset=ns/js attempt=5 reason=AllJobsCompleted message=jobset completed successfully duration=1h0m0s")
	step(func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = &js.CreationTimestamp })
}

func TestOnlyTheLeaderLogsTransitions(t *testing.T) {
	logger, lines := keptLines(t)
	r := newRig(t, newSet())
	r.logger = logger
	was, is := setWith(), setWith(jobsetv1alpha2.Attempt{Number: 1, Trigger: "Start"})
	r.measure().OnUpdate(was, is)
	diff(t, "lines of one that does not lead", 0, len(lines()))
	r.leads.Store(true)
	r.measure().OnAdd(is, true)
	diff(t, "lines about sets that were there before", 0, len(lines()))
	r.measure().OnUpdate(was, is)
	diff(t, "lines of the leader", 1, len(lines()))
	again := is.DeepCopy()
	r.measure().OnUpdate(is, again)
	diff(t, "lines about a set that is shown again", 1, len(lines()))
}

func TestMalformedChildrenAreLoggedOnce(t *testing.T) {
	logger, lines := keptLines(t)
	r := newRig(t, newSet())
	ctx, key := klog.NewContext(t.Context(), logger), cache.NewObjectName("ns", "js")
	for range 3 {
		r.logProblems(ctx, key, []string{"a", "b", "c", "d"})
	}
	diff(t, "lines", []string{"Ignored malformed children children=4 reason=a; b; c"}, lines())
	r.logProblems(ctx, key, nil)
	r.logProblems(ctx, key, []string{"a"})
	diff(t, "lines when a child is malformed again", "Ignored malformed children children=1 reason=a", lines()[1])
}
