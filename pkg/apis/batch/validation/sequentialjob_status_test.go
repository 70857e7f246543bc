// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

func TestStatusOfSequences(t *testing.T) {
	long := strings.Repeat("x", 1025)
	cases := map[string]struct {
		change func(*batch.SequentialJobStatus)
		want   []string
	}{
		"the controller goes on": {change: func(s *batch.SequentialJobStatus) {
			*s = at(batch.StepSucceeded, batch.StepFailed)
			s.Steps[1].Attempts = 2
			s.Progress.FailedIndex, s.Progress.FailureReason = ptr.To[int32](1), "BackoffLimitExceeded"
		}},
		"numbers": {
			change: func(s *batch.SequentialJobStatus) {
				s.State, s.ObservedGeneration, s.ActiveSeconds = batch.SequentialJobState{Active: -1, Succeeded: -1, Failed: -1}, -1, -1
			},
			want: []string{
				"status.state.active: Invalid value: must be 0 or more", "status.state.succeeded: Invalid value: must be 0 or more",
				"status.state.failed: Invalid value: must be 0 or more", "status.observedGeneration: Invalid value: must be 0 or more",
				"status.activeSeconds: Invalid value: must be 0 or more",
			},
		},
		"indexes of steps that do not exist": {
			change: func(s *batch.SequentialJobStatus) {
				s.Progress = batch.SequentialJobProgress{CurrentIndex: ptr.To[int32](4), FailedIndex: ptr.To[int32](-1), CompletedIndices: []int32{0, 3}, FailureReason: long}
			},
			want: []string{
				"status.progress.currentIndex: Invalid value: 4: must be from 0 to 3, because there are 3 steps",
				"status.progress.failedIndex: Invalid value: -1: must be from 0 to 2, because there are 3 steps",
				"status.progress.completedIndices[1]: Invalid value: 3: must be from 0 to 2, because there are 3 steps",
				"status.progress.failureReason: Too long: may not be more than 1024 bytes",
			},
		},
		"indexes out of order": {
			change: func(s *batch.SequentialJobStatus) { s.Progress.CompletedIndices = []int32{0, 2, 1, 1} },
			want: []string{
				"status.progress.completedIndices[2]: Invalid value: 1: must be greater than the index before it",
				"status.progress.completedIndices[3]: Invalid value: 1: must be greater than the index before it",
			},
		},
		"steps": {
			change: func(s *batch.SequentialJobStatus) {
				s.Steps[1] = batch.SequentialJobStepStatus{
					Kind: "CronJob", State: "Happy", Attempts: 1, Reason: long, Message: long, ChildName: long, ChildUID: "12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890",
					FirstCause: &jobset.FailureCause{Message: strings.Repeat("x", 4097)},
				}
			},
			want: []string{
				"status.steps[1].name: Required value: must be the name of the step",
				`status.steps[1].kind: Unsupported value: "CronJob": supported values: "Job", "JobSet"`,
				`status.steps[1].state: Unsupported value: "Happy": supported values: "Pending", "Starting", "Waiting", "Running", "Suspended", "Succeeded", "Failed"`,
				"status.steps[1].firstCause.job: Required value: must be the name of the failed Job",
				"status.steps[1].firstCause.message: Too long: may not be more than 1024 bytes",
				"status.steps[1].childName: Too long: may not be more than 253 bytes",
				"status.steps[1].childUID: Too long: may not be more than 128 bytes",
				"status.steps[1].reason: Too long: may not be more than 1024 bytes",
				"status.steps[1].message: Too long: may not be more than 1024 bytes",
			},
		},
		"too much": {
			change: func(s *batch.SequentialJobStatus) {
				s.Conditions, s.Steps = make([]metav1.Condition, 101), make([]batch.SequentialJobStepStatus, 101)
				s.Progress.CompletedIndices = make([]int32, 101)
			},
			want: []string{
				"status.conditions: Too many: 101: must have at most 100 items", "status.steps: Too many: 101: must have at most 100 items",
				"status.progress.completedIndices: Too many: 101: must have at most 100 items",
			},
		},
		"a bad condition": {
			change: func(s *batch.SequentialJobStatus) {
				s.Conditions = []metav1.Condition{{Type: "Failed", Status: "Perhaps", Reason: "x", LastTransitionTime: metav1.Unix(1, 0)}}
			},
			want: []string{`status.conditions[0].status: Unsupported value: "Perhaps": supported values: "False", "True", "Unknown"`},
		},
		"an action": {
			change: func(s *batch.SequentialJobStatus) {
				s.LastAction = &batch.SequentialJobLastAction{Action: "Explode", User: long, Reason: long, Step: long, Attempt: -1}
			},
			want: []string{
				`status.lastAction.action: Unsupported value: "Explode": supported values: "Restart", "Retry", "Suspend", "Resume", "Cancel"`,
				"status.lastAction.user: Too long: may not be more than 256 bytes", "status.lastAction.reason: Too long: may not be more than 1024 characters",
				"status.lastAction.step: Too long: may not be more than 253 bytes", "status.lastAction.attempt: Invalid value: must be 0 or more",
			},
		},
		"an old copy": {
			change: func(s *batch.SequentialJobStatus) { *s = at(batch.StepRunning) },
			want: []string{
				"status.steps: Invalid value: must keep the 2 steps that were started; it has 1",
				"status.progress.completedIndices: Invalid value: must keep 0, because the step has completed: only the action retry runs it again",
			},
		},
		"a step that was to run again, and was removed from the spec": {change: func(s *batch.SequentialJobStatus) { s.Steps = s.Steps[:3] }},
		"attempts are lost": {
			change: func(s *batch.SequentialJobStatus) { s.Steps[1].Attempts = 0 },
			want:   []string{"status.steps[1].attempts: Invalid value: 0: must be 1 or more, the number that is stored"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			prev := etl(t, "{containers: [{name: a, image: a}, {name: b, image: b}, {name: c, image: c}]}")
			prev.Status = at(batch.StepSucceeded, batch.StepRunning)
			if strings.Contains(name, "was removed") {
				prev.Status = at(batch.StepSucceeded, batch.StepSucceeded, batch.StepSucceeded, batch.StepPending)
			}
			next := prev.DeepCopy()
			tc.change(&next.Status)
			if diff := cmp.Diff(tc.want, messages(validation.ValidateSequentialJobStatusUpdate(next, prev))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if tc.want == nil {
				return
			}
			bad := next.DeepCopy()
			if got := messages(validation.ValidateSequentialJobStatusUpdate(bad, next)); got != nil {
				t.Errorf("what is stored already is refused: %q", got)
			}
		})
	}
}

// A retry takes back that steps have completed.
func TestActionsMayTakeBackProgress(t *testing.T) {
	prev := etl(t, "{containers: [{name: a, image: a}, {name: b, image: b}]}")
	prev.Status = at(batch.StepSucceeded, batch.StepFailed)
	next := prev.DeepCopy()
	next.Status = at(batch.StepStarting, batch.StepPending)
	if got := messages(validation.ValidateSequentialJobAction(next, prev)); got != nil {
		t.Errorf("errors: %q", got)
	}
}

func TestPodReadinessGroups(t *testing.T) {
	group := func(change func(*batch.PodReadinessGroup)) *batch.PodReadinessGroup {
		g := &batch.PodReadinessGroup{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Spec: batch.PodReadinessGroupSpec{ReadyWhen: batch.ReadyWhenRunning}}
		change(g)
		return g
	}
	cases := map[string]struct {
		change       func(*batch.PodReadinessGroup)
		want, status []string
	}{
		"the smallest and the largest": {change: func(g *batch.PodReadinessGroup) { g.Spec.MinMember = ptr.To[int32](100000) }},
		"no members":                   {change: func(g *batch.PodReadinessGroup) { g.Spec.MinMember = ptr.To[int32](0) }, want: []string{"spec.minMember: Invalid value: 0: must be from 1 to 100000; leave it out for the size that the pods or their owners give"}},
		"too many members":             {change: func(g *batch.PodReadinessGroup) { g.Spec.MinMember = ptr.To[int32](100001) }, want: []string{"spec.minMember: Invalid value: 100001: must be from 1 to 100000; leave it out for the size that the pods or their owners give"}},
		"another state of pods":        {change: func(g *batch.PodReadinessGroup) { g.Spec.ReadyWhen = "Done" }, want: []string{`spec.readyWhen: Unsupported value: "Done": supported values: "Running", "Ready"`}},
		"a name that is no value of a label": {
			change: func(g *batch.PodReadinessGroup) { g.Name = strings.Repeat("a", 64) },
			want:   []string{`metadata.name: Invalid value: "` + strings.Repeat("a", 64) + `": must have at most 63 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit, because it is the value of a label`},
		},
		"numbers and a phase of the status": {
			change: func(g *batch.PodReadinessGroup) {
				g.Status = batch.PodReadinessGroupStatus{Phase: "Odd", Pods: -1, Running: -1, Ready: -1}
			},
			status: []string{
				`status.phase: Unsupported value: "Odd": supported values: "Pending", "Ready", "Degraded"`, "status.pods: Invalid value: must be 0 or more",
				"status.running: Invalid value: must be 0 or more", "status.ready: Invalid value: must be 0 or more",
			},
		},
		"too many conditions": {
			change: func(g *batch.PodReadinessGroup) { g.Status.Conditions = make([]metav1.Condition, 101) },
			status: []string{"status.conditions: Too many: 101: must have at most 100 items"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			prev, next := group(func(*batch.PodReadinessGroup) {}), group(tc.change)
			if diff := cmp.Diff(tc.want, messages(validation.ValidatePodReadinessGroupCreate(next))); diff != "" {
				t.Errorf("create (-want +got):\n%s", diff)
			}
			if got := messages(validation.ValidatePodReadinessGroupUpdate(next, prev)); len(got) != len(tc.want) && !strings.Contains(name, "name") {
				t.Errorf("update: %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.status, messages(validation.ValidatePodReadinessGroupStatusUpdate(next, prev))); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if got := messages(append(validation.ValidatePodReadinessGroupUpdate(next, next), validation.ValidatePodReadinessGroupStatusUpdate(next, next)...)); got != nil {
				t.Errorf("what is stored already is refused: %q", got)
			}
		})
	}
}
