// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func testSuspendResume(t *testing.T, e *env) {
	e.running(t, "a")
	body := batchv1alpha1.JobSetActionSpec{Reason: "maintenance"}
	for range 2 { // the second time nothing changes
		if _, err := e.typed.Suspend(t.Context(), "a", &batchv1alpha1.JobSetSuspend{Spec: body}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		js := e.get(t, "a")
		if first := js.Status.Attempts[0]; !ptr.Deref(js.Spec.Suspend, false) || js.Generation != 2 || len(js.Status.Attempts) != 1 ||
			first.Outcome != jobsetv1alpha2.OutcomeSuspended || first.EndReason != "maintenance" || first.EndTime == nil {
			t.Fatalf("generation %d, %+v", js.Generation, js.Status)
		}
	}
	_, err := e.typed.Restart(t.Context(), "a", &batchv1alpha1.JobSetRestart{}, metav1.CreateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "the JobSet is suspended; resume it instead") {
		t.Errorf("restart of a suspended set: %v", err)
	}
	for range 2 {
		if _, err := e.typed.Resume(t.Context(), "a", &batchv1alpha1.JobSetResume{Spec: body}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		js := e.get(t, "a")
		if ptr.Deref(js.Spec.Suspend, true) || js.Generation != 3 || len(js.Status.Attempts) != 2 ||
			js.Status.Attempts[1].Trigger != jobsetv1alpha2.TriggerResume || js.Status.Attempts[1].Reason != "maintenance" {
			t.Fatalf("generation %d, %+v", js.Generation, js.Status)
		}
	}
	e.create(t, jobSet("queued", func(js *jobsetv1alpha2.JobSet) {
		js.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
		js.Spec.Suspend = ptr.To(true)
	}))
	_, err = e.typed.Resume(t.Context(), "queued", &batchv1alpha1.JobSetResume{}, metav1.CreateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `queue "team"`) {
		t.Errorf("resume of a queued set: %v", err)
	}
}

// testEditsOfSuspend suspends with one kind of write and resumes with another. What a queue suspends has no user.
func testEditsOfSuspend(t *testing.T, e *env) {
	e.running(t, "a")
	users := e.as(t, "ada")
	if _, err := users.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	js := e.get(t, "a")
	if first := js.Status.Attempts[0]; first.Outcome != jobsetv1alpha2.OutcomeSuspended || first.EndUser != "ada" || first.EndTime == nil {
		t.Errorf("after a patch, the attempt is %+v", first)
	}
	js.Spec.Suspend = ptr.To(false)
	js.Status.Attempts[0].EndUser = "mallory"
	if _, err := e.as(t, "bob").Update(t.Context(), js, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	js = e.get(t, "a")
	if n := len(js.Status.Attempts); n != 2 || js.Status.Attempts[0].EndUser != "ada" || js.Status.Attempts[1].User != "bob" ||
		js.Status.Attempts[1].Trigger != jobsetv1alpha2.TriggerResume {
		t.Errorf("after an update, the attempts are %+v", js.Status.Attempts)
	}
	patch := `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"a"},"spec":{"suspend":true}}`
	force := metav1.PatchOptions{FieldManager: "gitops", Force: ptr.To(true)}
	if _, err := users.Patch(t.Context(), "a", types.ApplyPatchType, []byte(patch), force); err != nil {
		t.Fatal(err)
	}
	if second := e.get(t, "a").Status.Attempts[1]; second.EndUser != "ada" || second.Outcome != jobsetv1alpha2.OutcomeSuspended {
		t.Errorf("after an apply, the attempt is %+v", second)
	}

	queued := e.running(t, "queued", func(js *jobsetv1alpha2.JobSet) { js.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"} })
	if _, err := users.Patch(t.Context(), "queued", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(queued.Status.Attempts, e.get(t, "queued").Status.Attempts); diff != "" {
		t.Errorf("attempts of a set that its queue suspended (-before +after):\n%s", diff)
	}
}

// testCheckpoints reports steps as a job does, with a merge patch, and reads what the server has recorded.
func testCheckpoints(t *testing.T, e *env) {
	const key = jobsetv1alpha2.CheckpointStepKey
	js := e.running(t, "a")
	ready := metav1.NewMicroTime(time.Now().Add(-time.Minute))
	js.Status.Attempts[0].RequestTime, js.Status.Attempts[0].CreateTime, js.Status.Attempts[0].ReadyTime = &ready, &ready, &ready
	if _, err := e.typed.UpdateStatus(t.Context(), js, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	report := func(step string, options metav1.PatchOptions) error {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},"status":{"goodMilliseconds":9,"attempts":[]}}`, key, step)
		_, err := e.as(t, "trainer").Patch(t.Context(), "a", types.MergePatchType, []byte(patch), options)
		return err
	}
	if err := report("100", metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || e.get(t, "a").Status.Attempts[0].Checkpoint != nil {
		t.Errorf("a dry run: %v", err)
	}
	if err := report("100", metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	js = e.get(t, "a")
	first := js.Status.Attempts[0].Checkpoint
	if first == nil || first.Step != 100 || first.Time.Before(&ready) || first.GoodMilliseconds < 60_000 || first.GoodMilliseconds != js.Status.GoodMilliseconds {
		t.Fatalf("checkpoint %+v, good time %d", first, js.Status.GoodMilliseconds)
	}
	if js.Generation != 1 {
		t.Errorf("generation %d after a report", js.Generation)
	}
	if err := report("50", metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	back := e.get(t, "a").Status
	if c := back.Attempts[0].Checkpoint; c.Step != 50 || back.GoodMilliseconds != (first.GoodMilliseconds+1)/2 {
		t.Errorf("after a rollback to half of the steps: %+v, good time %d of %d", c, back.GoodMilliseconds, first.GoodMilliseconds)
	}
	if err := report("-1", metav1.PatchOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must be a decimal number from 0 to 9223372036854775807") {
		t.Errorf("not a step: %v", err)
	}
	if diff := cmp.Diff(back, e.get(t, "a").Status); diff != "" {
		t.Errorf("a refused report changed the status (-before +after):\n%s", diff)
	}
}

func testCancelRetry(t *testing.T, e *env) {
	e.running(t, "a")
	first, err := e.typed.Cancel(t.Context(), "a", &batchv1alpha1.JobSetCancel{Spec: batchv1alpha1.JobSetActionSpec{Reason: "wrong data"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := e.typed.Cancel(t.Context(), "a", &batchv1alpha1.JobSetCancel{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Status, second.Status); diff != "" || first.Status.Attempt != 1 {
		t.Errorf("answers (-first +second):\n%s", diff)
	}
	js := e.get(t, "a")
	failed := meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.JobSetFailed)
	want := &metav1.Condition{
		Type: "Failed", Status: metav1.ConditionTrue, Reason: "Cancelled", ObservedGeneration: 1, Message: "cancelled by " + first.Status.User + ": wrong data",
	}
	ignoreTime := cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")
	if diff := cmp.Diff(want, failed, ignoreTime); diff != "" || js.Status.TerminalState != "Failed" {
		t.Errorf("after cancel: %s, terminal state %s", diff, js.Status.TerminalState)
	}
	retry := &batchv1alpha1.JobSetRetry{Spec: batchv1alpha1.JobSetRetrySpec{MaxRestarts: 3}}
	_, err = e.typed.Retry(t.Context(), "a", retry, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.maxRestarts: Invalid value: 3: must be 0: the JobSet has no failure policy") {
		t.Errorf("retry with restarts that nothing counts: %v", err)
	}
	retry.Spec.MaxRestarts = 0
	if _, err := e.typed.Retry(t.Context(), "a", retry, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	js = e.get(t, "a")
	failed = meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.JobSetFailed)
	if failed != nil || js.Status.TerminalState != "" || js.Status.Restarts != 1 || len(js.Status.Attempts) != 2 ||
		js.Status.Attempts[1].Trigger != jobsetv1alpha2.TriggerRetry {
		t.Errorf("after retry: %+v", js.Status)
	}
}

// testApplyAfterActions: an action changes spec.suspend without owning it. Who applies a manifest that says something about
// it gets what the manifest says; who applies one that does not leaves it as the action made it.
func testApplyAfterActions(t *testing.T, e *env) {
	cases := map[string]struct {
		line string
		want bool
	}{
		"the manifest says nothing": {want: true},
		"the manifest says false":   {line: "  suspend: false\n"},
		"the manifest says true":    {line: "  suspend: true\n", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := fmt.Sprintf("a%d", len(name))
			content := fmt.Sprintf(manifest, set) + tc.line
			if _, err := e.apply(t, set, content, "kubectl", metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := e.typed.Suspend(t.Context(), set, &batchv1alpha1.JobSetSuspend{}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if !ptr.Deref(e.get(t, set).Spec.Suspend, false) {
				t.Error("it is not suspended")
			}
			got, err := e.apply(t, set, content, "kubectl", metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, ptr.Deref(got.Spec.Suspend, false)); diff != "" {
				t.Errorf("suspended after the manifest was applied again (-want +got):\n%s", diff)
			}
		})
	}
}

func testActionKeepsTheRest(t *testing.T, e *env) {
	if _, err := e.apply(t, "a", fmt.Sprintf(manifest, "a"), "kubectl", metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	before := e.get(t, "a")
	if _, err := e.typed.Suspend(t.Context(), "a", &batchv1alpha1.JobSetSuspend{}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	after := e.get(t, "a")
	want := before.DeepCopy()
	want.Spec.Suspend, want.Generation, want.ResourceVersion = ptr.To(true), 2, after.ResourceVersion
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("after suspending (-want +got):\n%s", diff)
	}
}

func testBadActions(t *testing.T, e *env) {
	js := e.running(t, "a")
	uid := types.UID("other")
	cases := map[string]struct {
		request *batchv1alpha1.JobSetRestart
		is      func(error) bool
		want    string
	}{
		"another name": {
			request: &batchv1alpha1.JobSetRestart{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, is: apierrors.IsBadRequest,
			want: `metadata.name must be "a", the name of the JobSet in the URL, not "b": correct it or leave it out`,
		},
		"another namespace": {
			request: &batchv1alpha1.JobSetRestart{ObjectMeta: metav1.ObjectMeta{Namespace: "b"}}, is: apierrors.IsBadRequest,
			want: "the namespace of the provided object does not match the namespace sent on the request",
		},
		"an unknown scope": {
			request: &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{Scope: "Pod"}}, is: apierrors.IsInvalid,
			want: `JobSetRestart.batch.jobset-apiserver.io "a" is invalid: spec.scope: Unsupported value: "Pod": supported values: "JobSet", "ReplicatedJob", "Job"`,
		},
		"an unknown replicatedJob": {
			request: &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{Scope: batchv1alpha1.RestartScopeReplicatedJob, ReplicatedJob: "b"}}, is: apierrors.IsInvalid,
			want: `spec.replicatedJob: Invalid value: "b": must be the name of a replicatedJob of the JobSet: workers`,
		},
		"another set of the name": {
			request: &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{Preconditions: &batchv1alpha1.ActionPreconditions{UID: &uid}}}, is: apierrors.IsConflict,
			want: `preconditions.uid is other, but the JobSet has the UID ` + string(js.UID),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := e.typed.Restart(t.Context(), "a", tc.request, metav1.CreateOptions{})
			if !tc.is(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	if _, err := e.typed.Restart(t.Context(), "missing", &batchv1alpha1.JobSetRestart{}, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a missing set: %v", err)
	}
	if now := e.get(t, "a"); now.ResourceVersion != js.ResourceVersion {
		t.Error("a refused request changed the set")
	}
}
