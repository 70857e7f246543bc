// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	typedbatch "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// TestActionsOnSequences covers restart, suspend, resume, cancel and retry of SequentialJobs as users reach them, through the
// aggregation layer.
func TestActionsOnSequences(t *testing.T) {
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	plane.Aggregate(t, server)
	cases := map[string]func(*testing.T, *sequences){
		"each action is stored, answered and an event":        testActionsInTurn,
		"a retry goes back to an earlier step":                testRetryFromStep,
		"a dry run answers and stores nothing":                testSequenceDryRun,
		"50 restarts of one attempt at once are one":          testConcurrentSequenceRestarts,
		"bad requests are refused with their field":           testBadSequenceActions,
		"edits of suspend record their user":                  testSequenceSuspendEdit,
		"a change of the step that runs begins an attempt":    testSequenceRestartStrategy,
		"each action of each sequence is permitted by itself": testSequenceActionPermissions,
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, newSequences(t, newEnv(t, server, plane.Config))) })
	}
}

// running stores a sequence whose second step runs.
func (s *sequences) running(t *testing.T, name string, change ...func(*batchv1alpha1.SequentialJob)) *batchv1alpha1.SequentialJob {
	t.Helper()
	sj := s.create(t, sequence(name, change...))
	start := &sj.CreationTimestamp
	sj.Status.Progress = batchv1alpha1.SequentialJobProgress{CurrentIndex: ptr.To[int32](1), CompletedIndices: []int32{0}}
	sj.Status.State = batchv1alpha1.SequentialJobState{Active: 1, Succeeded: 1}
	sj.Status.StartTime, sj.Status.ActiveSince = start, start
	sj.Status.Steps = []batchv1alpha1.SequentialJobStepStatus{
		{Name: "extract", Kind: "Job", ChildName: name + "-0", ChildUID: "c0", State: batchv1alpha1.StepSucceeded, StartTime: start, CompletionTime: start, Attempts: 1},
		{Name: "transform", Kind: "Job", ChildName: name + "-1", ChildUID: "c1", State: batchv1alpha1.StepRunning, StartTime: start, Attempts: 1},
	}
	return s.store(t, sj)
}

func (s *sequences) store(t *testing.T, sj *batchv1alpha1.SequentialJob) *batchv1alpha1.SequentialJob {
	t.Helper()
	stored, err := s.typed.UpdateStatus(t.Context(), sj, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func (s *sequences) get(t *testing.T, name string) *batchv1alpha1.SequentialJob {
	t.Helper()
	sj, err := s.typed.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return sj
}

// asUser returns a client for the namespace with the rights and the name of a user.
func (s *sequences) asUser(t *testing.T, name string, groups ...string) typedbatch.SequentialJobInterface {
	t.Helper()
	user, err := plane.AddUser(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return batchClients(t, user.Config()).SequentialJobs(s.namespace)
}

func testActionsInTurn(t *testing.T, s *sequences) {
	before := s.running(t, "a")
	ada, ctx, options := s.asUser(t, "ada", "system:masters"), t.Context(), metav1.CreateOptions{}
	because := batchv1alpha1.SequentialJobActionSpec{Reason: "node-3 is slow"}
	var answers [5]batchv1alpha1.SequentialJobActionStatus
	check := func(i int, answer batchv1alpha1.SequentialJobActionStatus, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if answer.UID != before.UID || answer.User != "ada" || answer.Time == nil || answer.Step != "transform" {
			t.Errorf("the answer is %+v", answer)
		}
		last := s.get(t, "a").Status.LastAction
		if last == nil || last.User != "ada" || !last.Time.Equal(answer.Time) || last.Attempt != answer.Attempt {
			t.Errorf("the last action is %+v after %+v", last, answer)
		}
		answers[i] = answer
	}
	restarted, err := ada.Restart(ctx, "a", &batchv1alpha1.SequentialJobRestart{Spec: because}, options)
	check(0, restarted.Status, err)
	suspended, err := ada.Suspend(ctx, "a", &batchv1alpha1.SequentialJobSuspend{Spec: because}, options)
	check(1, suspended.Status, err)
	if sj := s.get(t, "a"); sj.Status.Phase != batchv1alpha1.PhaseSuspended || sj.Generation != 2 {
		t.Errorf("phase %s, generation %d", sj.Status.Phase, sj.Generation)
	}
	resumed, err := ada.Resume(ctx, "a", &batchv1alpha1.SequentialJobResume{}, options)
	check(2, resumed.Status, err)
	cancelled, err := ada.Cancel(ctx, "a", &batchv1alpha1.SequentialJobCancel{}, options)
	check(3, cancelled.Status, err)
	if sj := s.get(t, "a"); sj.Status.Phase != batchv1alpha1.PhaseFailed || sj.Status.CompletionTime == nil || sj.Status.ActiveSince != nil {
		t.Errorf("cancelled: %+v", sj.Status)
	}
	retried, err := ada.Retry(ctx, "a", &batchv1alpha1.SequentialJobRetry{}, options)
	check(4, retried.Status, err)
	messages := []string{
		`step "transform" was restarted as attempt 2`, `the SequentialJob was suspended in attempt 2 of step "transform"`,
		`the SequentialJob was resumed in attempt 2 of step "transform"`, `the SequentialJob was cancelled in attempt 2 of step "transform"`,
		`the SequentialJob was retried from step "transform" as attempt 3`,
	}
	for i, answer := range answers {
		if diff := cmp.Diff(messages[i], answer.Message); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
	}
	s.awaitNotes(t,
		"ada asked to restart step transform: node-3 is slow (step transform, attempt 2)",
		"ada asked to suspend the sequence: node-3 is slow (step transform, attempt 2)",
		"ada asked to resume the sequence (step transform, attempt 2)",
		"ada asked to cancel the sequence (step transform, attempt 2)",
		"ada asked to retry the sequence from step transform (step transform, attempt 3)",
	)
	after := s.get(t, "a")
	after.Status, after.Spec.Suspend, after.Generation, after.ResourceVersion = before.Status, nil, before.Generation, before.ResourceVersion
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("besides suspend and the status (-before +after):\n%s", diff)
	}
}

// testRetryFromStep speaks JSON, as kubectl create --raw does.
func testRetryFromStep(t *testing.T, s *sequences) {
	sj := s.running(t, "a")
	sj.Status.Conditions = []metav1.Condition{{
		Type: batchv1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonJobFailed, Message: "Job 1 failed", LastTransitionTime: sj.CreationTimestamp,
	}}
	sj.Status.Steps[1].State = batchv1alpha1.StepFailed
	s.store(t, sj)
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch.jobset-apiserver.io/v1alpha1", "kind": "SequentialJobRetry", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"fromStep": "extract", "preconditions": map[string]any{"step": "transform", "attempt": int64(1)}},
	}}
	first, err := s.dynamic.Create(t.Context(), request, metav1.CreateOptions{}, "retry")
	if err != nil {
		t.Fatal(err)
	}
	stored := s.get(t, "a")
	progress := batchv1alpha1.SequentialJobProgress{CurrentIndex: ptr.To[int32](0), CompletedIndices: []int32{}}
	if diff := cmp.Diff(progress, stored.Status.Progress, cmpopts.EquateEmpty()); diff != "" || stored.Status.Phase != batchv1alpha1.PhaseRunning {
		t.Errorf("phase %s, progress (-want +got):\n%s", stored.Status.Phase, diff)
	}
	steps := stored.Status.Steps
	if steps[0].State != batchv1alpha1.StepStarting || steps[0].Attempts != 2 || steps[1].State != batchv1alpha1.StepPending || steps[1].Attempts != 1 {
		t.Errorf("steps %+v", steps)
	}
	second, err := s.dynamic.Create(t.Context(), request, metav1.CreateOptions{}, "retry")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Object["status"], second.Object["status"]); diff != "" || s.get(t, "a").ResourceVersion != stored.ResourceVersion {
		t.Errorf("the same request again (-first +second):\n%s", diff)
	}
}

func testSequenceDryRun(t *testing.T, s *sequences) {
	before := s.running(t, "a")
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	restarted, err := s.typed.Restart(t.Context(), "a", &batchv1alpha1.SequentialJobRestart{}, dry)
	if err != nil || restarted.Status.Attempt != 2 {
		t.Errorf("%v, %+v", err, restarted)
	}
	cancelled, err := s.typed.Cancel(t.Context(), "a", &batchv1alpha1.SequentialJobCancel{}, dry)
	if err != nil || !strings.Contains(cancelled.Status.Message, "was cancelled") {
		t.Errorf("%v, %+v", err, cancelled)
	}
	if diff := cmp.Diff(before, s.get(t, "a")); diff != "" {
		t.Errorf("a dry run changed the sequence (-before +after):\n%s", diff)
	}
}

func testConcurrentSequenceRestarts(t *testing.T, s *sequences) {
	s.running(t, "a")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			request := &batchv1alpha1.SequentialJobRestart{Spec: batchv1alpha1.SequentialJobActionSpec{
				Preconditions: &batchv1alpha1.SequentialJobPreconditions{Step: "transform", Attempt: ptr.To[int32](1)},
			}}
			answer, err := s.typed.Restart(t.Context(), "a", request, metav1.CreateOptions{})
			if err != nil || answer.Status.Attempt != 2 {
				t.Errorf("%v, %+v", err, answer)
			}
		})
	}
	all.Wait()
	if got := s.get(t, "a").Status.Steps[1].Attempts; got != 2 {
		t.Errorf("the step is in attempt %d, want 2", got)
	}
}
