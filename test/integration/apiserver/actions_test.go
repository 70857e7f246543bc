// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// TestActions covers restart, suspend, resume, cancel and retry as users reach them, through the aggregation layer.
func TestActions(t *testing.T) {
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	plane.Aggregate(t, server)
	cases := map[string]func(*testing.T, *env){
		"a restart is counted, recorded and answered":            testRestart,
		"single Jobs are restarted without the gate":             testRestartJob,
		"requests in JSON work as those in protobuf":             testActionInJSON,
		"50 restarts of one attempt at once are one":             testConcurrentRestarts,
		"restarts win over a busy writer of the status":          testRestartAmongWriters,
		"suspend and resume change the spec and the history":     testSuspendResume,
		"reports of checkpoints are recorded":                    testCheckpoints,
		"edits of suspend record their user":                     testEditsOfSuspend,
		"cancel and retry end a set and run it again":            testCancelRetry,
		"a dry run answers and stores nothing":                   testActionDryRun,
		"bad requests are refused with their field":              testBadActions,
		"appliers keep their fields after actions":               testApplyAfterActions,
		"an action leaves who owns what, and the rest, as it is": testActionKeepsTheRest,
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, newEnv(t, server, plane.Config)) })
	}
}

// running stores a set whose first attempt runs.
func (e *env) running(t *testing.T, name string, change ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	t.Helper()
	js := e.create(t, jobSet(name, change...))
	js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "workers", Active: 2}}
	js.Status.Attempts = []jobsetv1alpha2.Attempt{{
		Number: 1, Trigger: jobsetv1alpha2.TriggerStart, Scope: jobsetv1alpha2.ScopeJobSet,
		RequestTime: ptr.To(metav1.NewMicroTime(js.CreationTimestamp.Time)),
	}}
	stored, err := e.typed.UpdateStatus(t.Context(), js, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func restartOf(attempt int32) *batchv1alpha1.JobSetRestart {
	return &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{
		Reason: "stuck", Preconditions: &batchv1alpha1.ActionPreconditions{Attempt: &attempt},
	}}
}

// forcedRestart restarts also what was restarted before and is not ready yet: no controller runs in these tests.
func forcedRestart() *batchv1alpha1.JobSetRestart {
	return &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{Force: true}}
}

func testRestart(t *testing.T, e *env) {
	before := e.running(t, "a")
	answer, err := e.typed.Restart(t.Context(), "a", restartOf(1), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	js := e.get(t, "a")
	if len(js.Status.Attempts) != 2 || js.Status.Restarts != 1 || js.Status.RestartsCountTowardsMax != 0 {
		t.Fatalf("the status is %+v", js.Status)
	}
	user := answer.Status.User
	wantAttempts := []jobsetv1alpha2.Attempt{before.Status.Attempts[0], {
		Number: 2, Trigger: jobsetv1alpha2.TriggerRequested, Scope: jobsetv1alpha2.ScopeJobSet, User: user, Reason: "stuck",
	}}
	wantAttempts[0].Outcome, wantAttempts[0].EndUser, wantAttempts[0].EndReason = jobsetv1alpha2.OutcomeRestarted, user, "stuck"
	wantAttempts[0].EndTime, wantAttempts[1].RequestTime = answer.Status.Time, answer.Status.Time
	if diff := cmp.Diff(wantAttempts, js.Status.Attempts); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	want := batchv1alpha1.JobSetActionStatus{UID: js.UID, Attempt: 2, User: user, Time: answer.Status.Time, Message: "the JobSet was restarted as attempt 2"}
	if diff := cmp.Diff(want, answer.Status); diff != "" || user == "" || answer.Status.Time == nil {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
	if answer.Name != "a" || answer.Namespace != e.namespace || len(answer.ManagedFields) > 0 || answer.Spec.Scope != batchv1alpha1.RestartScopeJobSet {
		t.Errorf("the answer is %+v", answer)
	}
	wantCondition := metav1.Condition{
		Type: jobsetv1alpha2.JobSetRestarting, Status: metav1.ConditionTrue, Reason: "RestartRequested", ObservedGeneration: 1,
		Message: "restart requested by " + user + ": stuck",
	}
	got := meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.JobSetRestarting)
	if diff := cmp.Diff(&wantCondition, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}

	again, err := e.typed.Restart(t.Context(), "a", restartOf(1), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answer, again); diff != "" {
		t.Errorf("the same request again (-first +second):\n%s", diff)
	}
	if now := e.get(t, "a"); now.ResourceVersion != js.ResourceVersion {
		t.Errorf("the same request again changed the set: %s", cmp.Diff(js, now))
	}
	joined, err := e.typed.Restart(t.Context(), "a", &batchv1alpha1.JobSetRestart{}, metav1.CreateOptions{})
	if err != nil || joined.Status.Attempt != 2 || joined.Status.Time != nil || !strings.HasSuffix(joined.Status.Message, "is not ready yet; not restarted again; set spec.force to restart it") {
		t.Errorf("a restart before the attempt is ready: %v, %+v", err, joined)
	}
	if now := e.get(t, "a"); now.ResourceVersion != js.ResourceVersion {
		t.Errorf("a restart before the attempt is ready changed the set: %s", cmp.Diff(js, now))
	}
	if _, err := e.typed.Restart(t.Context(), "a", forcedRestart(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if js = e.get(t, "a"); js.Status.Restarts != 2 || len(js.Status.Attempts) != 3 {
		t.Errorf("by force nothing was restarted: %+v", js.Status)
	}
}

func testRestartJob(t *testing.T, e *env) {
	e.running(t, "a", func(js *jobsetv1alpha2.JobSet) { js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 1} })
	one := &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{
		Scope: batchv1alpha1.RestartScopeJob, ReplicatedJob: "workers", JobIndex: ptr.To[int32](1), CountTowardsMaxRestarts: true,
	}}
	answer, err := e.typed.Restart(t.Context(), "a", one, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	js := e.get(t, "a")
	if answer.Status.Message != "job 1 of replicatedJob workers was restarted as attempt 2" || js.Status.Restarts != 0 {
		t.Errorf("got %q, %+v", answer.Status.Message, js.Status)
	}
	count := js.Status.ReplicatedJobsStatus[0]
	if diff := cmp.Diff([][]int32{{0, 1}, {0, 1}}, [][]int32{count.JobRestarts, count.JobRestartsCountTowardsMax}); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	one.Spec.Force = true
	if _, err = e.typed.Restart(t.Context(), "a", one, metav1.CreateOptions{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "1 of 1 are already used") {
		t.Errorf("with the budget used up: %v", err)
	}
	// The controller's writes keep the counters, although the gate is off.
	js.Status.ReplicatedJobsStatus[0].Active = 1
	if js, err = e.typed.UpdateStatus(t.Context(), js, metav1.UpdateOptions{}); err != nil || len(js.Status.ReplicatedJobsStatus[0].JobRestarts) != 2 {
		t.Errorf("after a write of the status: %v, %+v", err, js)
	}
}

func testActionInJSON(t *testing.T, e *env) {
	e.running(t, "a")
	clients, err := versioned.NewForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	typed := clients.JobsetV1alpha2().JobSets(e.namespace)
	inJSON, err := typed.Restart(t.Context(), "a", restartOf(1), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inProtobuf, err := e.typed.Restart(t.Context(), "a", restartOf(1), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inJSON.TypeMeta = metav1.TypeMeta{}
	inProtobuf.TypeMeta = metav1.TypeMeta{}
	if diff := cmp.Diff(inJSON, inProtobuf); diff != "" {
		t.Errorf("answers (-JSON +protobuf):\n%s", diff)
	}
	// As a user of curl or of another language sends it: kind and version are in the body, or are left out.
	for _, body := range []string{
		`{"apiVersion":"batch.jobset-apiserver.io/v1alpha1","kind":"JobSetRestart","spec":{"force":true,"preconditions":{"attempt":2}}}`,
		`{"spec":{"force":true,"preconditions":{"attempt":2}}}`,
	} {
		var answer batchv1alpha1.JobSetRestart
		raw, err := clients.JobsetV1alpha2().RESTClient().Post().Namespace(e.namespace).Resource("jobsets").Name("a").SubResource("restart").
			Body([]byte(body)).SetHeader("Content-Type", "application/json").Do(t.Context()).Raw()
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		decode(t, raw, &answer)
		if answer.Kind != "JobSetRestart" || answer.APIVersion != "batch.jobset-apiserver.io/v1alpha1" || answer.Status.Attempt != 3 {
			t.Errorf("%s: the answer is %s", body, raw)
		}
	}
}

// testConcurrentRestarts: who asks for the restart of the same attempt gets the same one, as often as it is asked for.
func testConcurrentRestarts(t *testing.T, e *env) {
	const callers = 50
	e.running(t, "a")
	answers, errs := make([]*batchv1alpha1.JobSetRestart, callers), make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { answers[i], errs[i] = e.typed.Restart(t.Context(), "a", restartOf(1), metav1.CreateOptions{}) })
	}
	all.Wait()
	for i := range callers {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if diff := cmp.Diff(answers[0], answers[i]); diff != "" {
			t.Errorf("two answers (-first +other):\n%s", diff)
		}
	}
	if js := e.get(t, "a"); js.Status.Restarts != 1 || len(js.Status.Attempts) != 2 {
		t.Errorf("%d restarts, %d attempts", js.Status.Restarts, len(js.Status.Attempts))
	}
	_, err := e.typed.Restart(t.Context(), "a", restartOf(5), metav1.CreateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "preconditions.attempt is 5, but attempt 2 is current (begun by a restart requested by ") {
		t.Errorf("for another attempt: %v", err)
	}
}

// testRestartAmongWriters: a restart is no optimistic write, which would lose against a controller that writes all the time.
func testRestartAmongWriters(t *testing.T, e *env) {
	e.running(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var writes atomic.Int64
	for range 4 {
		writers.Go(func() {
			for ctx.Err() == nil {
				js, err := e.typed.Get(ctx, "a", metav1.GetOptions{})
				if err != nil {
					continue
				}
				js.Status.ReplicatedJobsStatus[0].Ready++
				if _, err = e.typed.UpdateStatus(ctx, js, metav1.UpdateOptions{}); err == nil {
					writes.Add(1)
				}
			}
		})
	}
	for range 20 {
		before := writes.Load()
		framework.Eventually(t, "a writer has written", func(context.Context) error {
			if writes.Load() == before {
				return errors.New("none has")
			}
			return nil
		})
		if _, err := e.typed.Restart(t.Context(), "a", forcedRestart(), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}
	cancel()
	writers.Wait()
	js := e.get(t, "a")
	if js.Status.Restarts != 20 || js.Status.Attempts[9].Number != 21 || js.Status.ReplicatedJobsStatus[0].Ready == 0 {
		t.Errorf("the status is %+v", js.Status)
	}
}

func testActionDryRun(t *testing.T, e *env) {
	before := e.running(t, "a")
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	restart, err := e.typed.Restart(t.Context(), "a", restartOf(1), options)
	if err != nil || restart.Status.Attempt != 2 {
		t.Errorf("restart: %v, %+v", err, restart)
	}
	suspend, err := e.typed.Suspend(t.Context(), "a", &batchv1alpha1.JobSetSuspend{}, options)
	if err != nil || suspend.Status.Attempt != 1 {
		t.Errorf("suspend: %v, %+v", err, suspend)
	}
	cancel, err := e.typed.Cancel(t.Context(), "a", &batchv1alpha1.JobSetCancel{}, options)
	if err != nil || cancel.Status.Attempt != 1 {
		t.Errorf("cancel: %v, %+v", err, cancel)
	}
	if _, err := e.typed.Retry(t.Context(), "a", &batchv1alpha1.JobSetRetry{}, options); !apierrors.IsConflict(err) {
		t.Errorf("retry: %v", err)
	}
	if diff := cmp.Diff(before, e.get(t, "a")); diff != "" {
		t.Errorf("dry runs changed the set (-before +after):\n%s", diff)
	}
}
