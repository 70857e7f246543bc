// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/lookups"
)

// nightly is a sequence whose second step runs in its second attempt.
func nightly(change ...func(*batchv1alpha1.SequentialJob)) *batchv1alpha1.SequentialJob {
	sj := &batchv1alpha1.SequentialJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch.jobset-apiserver.io/v1alpha1", Kind: "SequentialJob"},
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "ns", UID: "u-1"},
		Spec:       batchv1alpha1.SequentialJobSpec{Containers: []corev1.Container{{Name: "prepare"}, {Name: "train"}, {Name: "0"}}},
		Status: batchv1alpha1.SequentialJobStatus{
			State:    batchv1alpha1.SequentialJobState{Active: 1, Succeeded: 1},
			Progress: batchv1alpha1.SequentialJobProgress{CurrentIndex: ptr.To[int32](1), CompletedIndices: []int32{0}},
			Steps: []batchv1alpha1.SequentialJobStepStatus{
				{Name: "prepare", State: batchv1alpha1.StepSucceeded, Attempts: 1}, {Name: "train", State: batchv1alpha1.StepRunning, Attempts: 2},
			},
		},
	}
	for _, f := range change {
		f(sj)
	}
	return sj
}

// callSequence runs a command against a server with one sequence.
func callSequence(t *testing.T, command func(*cli.Factory, []cli.For[Target]) *cobra.Command, args ...string) outcome {
	t.Helper()
	var got outcome
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lookups.Answer(w, r, "sequentialjobs") {
			return
		}
		path, found := strings.CutPrefix(r.URL.Path, "/apis/batch.jobset-apiserver.io/v1alpha1/namespaces/ns/sequentialjobs/nightly")
		if !found {
			t.Errorf("unexpected request %s %s", r.Method, r.URL)
		}
		body, _ := io.ReadAll(r.Body)
		got.Requests = append(got.Requests, strings.TrimSpace(r.Method+" "+path+" "+spec(t, body)))
		code, object := http.StatusOK, any(nightly())
		if r.Method == http.MethodPost {
			code, object = answerAsSequence(body)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object)
	}))
	defer server.Close()
	var out, errOut bytes.Buffer
	f := cli.NewFactory(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	f.Flags.APIServer, f.Flags.Namespace = ptr.To(server.URL), ptr.To("ns")
	cmd := command(f, []cli.For[Target]{{Kind: cli.JobSet, Do: JobSet{}}, {Kind: cli.SequentialJob, Do: SequentialJob{}}})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		got.Err = err.Error()
	}
	got.Out, got.ErrOut = out.String(), errOut.String()
	return got
}

// answerAsSequence answers a request. One for another step is refused.
func answerAsSequence(body []byte) (int, any) {
	var answer map[string]any
	if err := json.Unmarshal(body, &answer); err != nil {
		return http.StatusBadRequest, nil
	}
	if strings.Contains(string(body), `"step":"other"`) {
		err := apierrors.NewConflict(schema.GroupResource{Group: batchv1alpha1.GroupName, Resource: "sequentialjobs"}, "nightly", errors.New("words"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{
			Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.preconditions.step", Message: `attempt 2 of step "train" is current`,
		}}
		err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return http.StatusConflict, err.ErrStatus
	}
	answer["status"] = map[string]any{"uid": "u-1", "step": "train", "attempt": 3, "user": "alice", "time": "2026-11-20T12:00:00.000000Z", "message": "done"}
	return http.StatusCreated, answer
}

func TestSequenceCommands(t *testing.T) {
	const (
		seen = `"preconditions":{"uid":"u-1","step":"train","attempt":2}`
		name = "sequentialjob.batch.jobset-apiserver.io/nightly"
	)
	cases := map[string]struct {
		command func(*cli.Factory, []cli.For[Target]) *cobra.Command
		args    []string
		want    outcome
	}{
		"a restart names the step and the attempt that were seen": {
			command: NewRestart, args: []string{"sqj/nightly", "--reason", "rack 7"},
			want: outcome{Out: name + " restarted (step train, attempt 3)\n",
				Requests: []string{"GET", `POST /restart SequentialJobRestart{"reason":"rack 7",` + seen + `}`}},
		},
		"a restart of an attempt": {
			command: NewRestart, args: []string{"sqj/nightly", "--attempt", "2", "--step", "train"},
			want: outcome{Out: name + " restarted (step train, attempt 3)\n",
				Requests: []string{`POST /restart SequentialJobRestart{"preconditions":{"step":"train","attempt":2}}`}},
		},
		"a step that is not current": {
			command: NewRestart, args: []string{"sqj/nightly", "--step", "other"},
			want: outcome{Err: cli.ErrSilent.Error(), ErrOut: `error: ` + name + ` not restarted: --step other is not the current one; attempt 2 of step "train" is current` + "\n",
				Requests: []string{`POST /restart SequentialJobRestart{"preconditions":{"step":"other"}}`}},
		},
		"a suspension is for any step": {
			command: NewSuspend, args: []string{"sequentialjob/nightly"},
			want: outcome{Out: name + " suspended (step train, attempt 3)\n", Requests: []string{"POST /suspend SequentialJobSuspend{}"}},
		},
		"a resumption": {
			command: NewResume, args: []string{"sqj/nightly", "-o", "name"},
			want: outcome{Out: name + "\n", Requests: []string{"POST /resume SequentialJobResume{}"}},
		},
		"a cancellation": {
			command: NewCancel, args: []string{"sqj/nightly", "--yes", "--dry-run=server"},
			want: outcome{Out: name + " cancelled (step train, attempt 3) (server dry run)\n", Requests: []string{"POST /cancel SequentialJobCancel{}"}},
		},
		"a retry from a step by name": {
			command: NewRetry, args: []string{"sqj/nightly", "--from-step", "prepare"},
			want: outcome{Out: name + " retried (step train, attempt 3)\n",
				Requests: []string{"GET", `POST /retry SequentialJobRetry{"fromStep":"prepare",` + seen + `}`}},
		},
		"a retry from a step by index": {
			command: NewRetry, args: []string{"sqj/nightly", "--from-step", "1"},
			want: outcome{Out: name + " retried (step train, attempt 3)\n",
				Requests: []string{"GET", "GET", `POST /retry SequentialJobRetry{"fromStep":"train",` + seen + `}`}},
		},
		"a retry from a step whose name is a number": {
			command: NewRetry, args: []string{"sqj/nightly", "--from-step", "0"},
			want: outcome{Out: name + " retried (step train, attempt 3)\n",
				Requests: []string{"GET", "GET", `POST /retry SequentialJobRetry{"fromStep":"0",` + seen + `}`}},
		},
		"a retry from no step": {
			command: NewRetry, args: []string{"sqj/nightly", "--from-step", "7"},
			want: outcome{Err: cli.ErrSilent.Error(), Requests: []string{"GET", "GET"},
				ErrOut: "error: --from-step: must be a step of sequentialjob/nightly, by index from 0 to 2 or by name (prepare, train, 0), not 7\n"},
		},
		"a flag of JobSets": {
			command: NewRetry, args: []string{"sqj/nightly", "--max-restarts", "1"},
			want: outcome{Err: "--max-restarts: is for JobSets, and cannot be used with sequentialjob/nightly"},
		},
		"another flag of JobSets": {
			command: NewRestart, args: []string{"sqj/nightly", "--force"},
			want: outcome{Err: "--force: is for JobSets, and cannot be used with sequentialjob/nightly"},
		},
		"a flag of SequentialJobs": {
			command: NewRetry, args: []string{"js/train", "--from-step", "prepare"},
			want: outcome{Err: "--from-step: is for SequentialJobs, and cannot be used with train"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, callSequence(t, tc.command, tc.args...)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSequenceProgress(t *testing.T) {
	finish := func(conditionType, reason, message string) func(*batchv1alpha1.SequentialJob) {
		return func(sj *batchv1alpha1.SequentialJob) {
			sj.Status.Conditions = []metav1.Condition{{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message}}
		}
	}
	state := func(s batchv1alpha1.StepState) func(*batchv1alpha1.SequentialJob) {
		return func(sj *batchv1alpha1.SequentialJob) { sj.Status.Steps[1].State = s }
	}
	suspended := func(sj *batchv1alpha1.SequentialJob) {
		sj.Spec.Suspend = ptr.To(true)
		sj.Status.LastAction = &batchv1alpha1.SequentialJobLastAction{Action: batchv1alpha1.ActionSuspend, User: "bob"}
	}
	idle := func(sj *batchv1alpha1.SequentialJob) { sj.Status.State.Active = 0 }
	cases := map[string]struct {
		goal   Goal
		change func(*batchv1alpha1.SequentialJob)
		want   Progress
	}{
		"runs":      {want: Progress{Reached: true, Text: "step 2/3, train, attempt 2 runs"}, change: state(batchv1alpha1.StepRunning)},
		"starts":    {want: Progress{Text: "step 2/3, train, attempt 2 starts"}, change: state(batchv1alpha1.StepStarting)},
		"waits":     {want: Progress{Text: "step 2/3, train, attempt 2 waits for quota"}, change: state(batchv1alpha1.StepWaiting)},
		"pending":   {want: Progress{Text: "step 2/3 is about to start"}, change: state(batchv1alpha1.StepPending)},
		"completed": {want: Progress{Reached: true, Text: "completed"}, change: finish("Complete", "AllJobsCompleted", "")},
		"failed":    {want: Progress{Failure: "Failed (JobFailed): Job 1 failed"}, change: finish("Failed", "JobFailed", "Job 1 failed")},
		"suspended while it is to run": {change: suspended,
			want: Progress{Failure: "the sequence is suspended by bob; run `kubectl jobset resume sqj/nightly` to resume it"}},
		"is to be suspended": {goal: GoalSuspended, change: suspended, want: Progress{Text: "1 child to be suspended"}},
		"is suspended": {goal: GoalSuspended, change: func(sj *batchv1alpha1.SequentialJob) { suspended(sj); finish("Suspended", "Suspended", "")(sj) },
			want: Progress{Reached: true, Text: "suspended, no child is active"}},
		"resumed while it is to be suspended": {goal: GoalSuspended, change: idle, want: Progress{Failure: "the sequence was resumed in the meantime"}},
		"completed while it is to be suspended": {goal: GoalSuspended, change: finish("Complete", "AllJobsCompleted", ""),
			want: Progress{Failure: "the sequence finished in the meantime: Complete (AllJobsCompleted)"}},
		"stops": {goal: GoalStopped, change: state(batchv1alpha1.StepRunning), want: Progress{Text: "1 child to be deleted"}},
		"stops, as the finalizer says": {goal: GoalStopped, want: Progress{Text: "1 child to be deleted"},
			change: func(sj *batchv1alpha1.SequentialJob) {
				idle(sj)
				sj.Finalizers = []string{batchv1alpha1.SequentialJobFinalizer}
			}},
		"stopped": {goal: GoalStopped, change: idle, want: Progress{Reached: true, Text: "no child is active"}},
		"recreated": {change: func(sj *batchv1alpha1.SequentialJob) { sj.UID = "u-2" },
			want: Progress{Failure: "the sequence was deleted, and another one created under its name"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := sequenceProgress(tc.goal, nightly(tc.change), Status{UID: "u-1", Step: "train", Attempt: 2})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}
