// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record/recordtest"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

var runEnded = time.Date(2026, 3, 9, 13, 0, 0, 0, time.UTC)

// withStatus gives a run a spec and a status.
func withStatus(t *testing.T, spec, status any) func(*archivev1alpha1.Run) {
	t.Helper()
	raw := func(value any) runtime.RawExtension {
		content, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: content}
	}
	return func(run *archivev1alpha1.Run) {
		run.Details = &archivev1alpha1.RunDetails{Spec: raw(spec), Status: raw(status)}
	}
}

func minute(n int) *metav1.MicroTime {
	return ptr.To(metav1.NewMicroTime(runEnded.Add(time.Duration(n-60) * time.Minute)))
}

// attempts are two attempts of a set, the second of which still runs.
func attempts() []jobsetv1alpha2.Attempt {
	return []jobsetv1alpha2.Attempt{
		{
			Number: 1, Trigger: jobsetv1alpha2.TriggerStart, Scope: jobsetv1alpha2.ScopeJobSet, RequestTime: minute(0), CreateTime: minute(2), ReadyTime: minute(5), EndTime: minute(30),
			Outcome:    jobsetv1alpha2.OutcomeRestarted,
			FirstCause: &jobsetv1alpha2.FailureCause{Job: "train-w-0", Pod: "train-w-0-0-abcde", Node: "node-7", Reason: recordtest.Hostile},
		},
		{Number: 2, Trigger: jobsetv1alpha2.TriggerFailurePolicy, Scope: jobsetv1alpha2.ScopeJobSet, RequestTime: minute(30), CreateTime: minute(31), ReadyTime: minute(33)},
	}
}

func TestTimelineOfRun(t *testing.T) {
	deleted := func(run *archivev1alpha1.Run) {
		run.State, run.Reason, run.EndUser, run.Attempts = archivev1alpha1.RunDeleted, "", "bob", 2
	}
	steps := batchv1alpha1.SequentialJobStatus{Steps: []batchv1alpha1.SequentialJobStepStatus{
		{Name: "load", State: batchv1alpha1.StepSucceeded, Attempts: 1, StartTime: ptr.To(metav1.NewTime(minute(0).Time)), CompletionTime: ptr.To(metav1.NewTime(minute(20).Time))},
		{Name: "fit", State: batchv1alpha1.StepRunning, Attempts: 1, StartTime: ptr.To(metav1.NewTime(minute(20).Time))},
	}}
	sequence := func(run *archivev1alpha1.Run) {
		run.Object.APIVersion, run.Object.Kind = batchv1alpha1.SchemeGroupVersion.String(), "SequentialJob"
	}
	spec := batchv1alpha1.SequentialJobSpec{}
	for _, name := range []string{"load", "fit"} {
		spec.Steps = append(spec.Steps, batchv1alpha1.SequentialJobStep{Name: name})
	}
	for name, changes := range map[string][]func(*archivev1alpha1.Run){
		"run-jobset.txt":   {deleted, withStatus(t, jobsetv1alpha2.JobSetSpec{}, jobsetv1alpha2.JobSetStatus{Attempts: attempts()})},
		"run-sequence.txt": {deleted, sequence, withStatus(t, spec, steps)},
		"run-plain.txt":    {recordtest.Failed(recordtest.Hostile, "node-7"), func(run *archivev1alpha1.Run) { run.ReadyMilliseconds = 1_800_000 }},
	} {
		t.Run(name, func(t *testing.T) {
			run := recordtest.Run("train", runEnded, changes...)
			view := buildRun(&run, runEnded.Add(3*time.Hour))
			got := text(view, screen{Terminal: cli.Terminal{Width: 100}, zone: time.UTC})
			if strings.ContainsAny(got, "\x1b\x07\r") || strings.Contains(got, "still running") {
				t.Errorf("the text has control characters, or says that a record runs:\n%s", got)
			}
			golden.Compare(t, name, got)
			var page bytes.Buffer
			if err := Page(&page, view, time.UTC); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(page.String(), "record of") || strings.Contains(page.String(), "\x1b") {
				t.Error("the page does not say that it shows a record, or has control characters")
			}
		})
	}
}

func TestJobsOfRunAreRefused(t *testing.T) {
	_, err := Run(t.Context(), nil, "a", true)
	if want := "--jobs: must be absent for a run: its record has no Jobs"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
