// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// threeContainers is a manifest as users of the first operator for sequences wrote them, but for its apiVersion.
const threeContainers = `apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
metadata: {name: %s}
spec:
  %s
  template:
    metadata:
      annotations: {%s}
    spec:
      restartPolicy: Never
      volumes:
      - {name: scratch, emptyDir: {}}
  containers:
  - {name: first, image: busybox, command: [echo, one], volumeMounts: [{name: scratch, mountPath: /scratch}]}
  - {image: busybox, command: [echo, two]}
  - {name: third, image: busybox, command: [echo, three]}
`

// atOnce and steered are what the pods of a sequence do: end after no time, or run until the test says otherwise.
const (
	atOnce  = `jobset-apiserver.io/kwok-run-seconds: "0"`
	steered = `jobset-apiserver.io/kwok-outcome: running`
)

// sequence makes a sequence of three containers whose pods do that.
func (k *kubectl) sequence(name, pods string, spec ...string) {
	k.Helper()
	k.okIn(fmt.Sprintf(threeContainers, name, strings.Join(spec, "\n  "), pods), "create", "-f", "-")
}

// read gets an object into a typed value.
func (k *kubectl) read(into any, args ...string) {
	k.Helper()
	if err := json.Unmarshal([]byte(k.ok(append([]string{"get", "-o", "json"}, args...)...)), into); err != nil {
		k.Fatal(err)
	}
}

func (k *kubectl) sequenceNamed(name string) *batchv1alpha1.SequentialJob {
	k.Helper()
	sj := &batchv1alpha1.SequentialJob{}
	k.read(sj, "sequentialjob", name)
	return sj
}

// endStep lets the pods of a step end, once one is on a node.
func (k *kubectl) endStep(name string, index int, outcome string) {
	k.Helper()
	selector := fmt.Sprintf("%s=%s,%s=%d", batchv1alpha1.SequentialJobNameKey, name, batchv1alpha1.StepIndexKey, index)
	k.eventually(func() string {
		if got := k.ok("get", "pods", "-l", selector, "-o", "jsonpath={.items[*].status.phase}"); !strings.Contains(got, "Running") {
			return fmt.Sprintf("step %d of %s has no pod that runs, but %q", index, name, got)
		}
		return ""
	})
	k.ok("annotate", "pods", "-l", selector, "--overwrite", outcomeKey+"="+outcome, secondsKey+"=0")
}

const (
	outcomeKey = "jobset-apiserver.io/kwok-outcome"
	secondsKey = "jobset-apiserver.io/kwok-run-seconds"
)

// condition returns status and reason of a condition, for example True/JobFailed.
func condition(sj *batchv1alpha1.SequentialJob, name string) string {
	c := meta.FindStatusCondition(sj.Status.Conditions, name)
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason
}

// untilCondition waits for a condition with that status and reason.
func (k *kubectl) untilCondition(name, kind, want string) *batchv1alpha1.SequentialJob {
	k.Helper()
	var sj *batchv1alpha1.SequentialJob
	k.eventually(func() string {
		sj = k.sequenceNamed(name)
		if got := condition(sj, kind); got != want {
			return fmt.Sprintf("condition %s is %q, must become %q", kind, got, want)
		}
		return ""
	})
	return sj
}

// progressOf returns the part of a status that users of the first operator read.
func progressOf(sj *batchv1alpha1.SequentialJob) string {
	text, err := json.Marshal(map[string]any{"state": sj.Status.State, "progress": sj.Status.Progress})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestSequenceRunsToCompletion(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.sequence("etl", atOnce)
	k.wait("--for=condition=Complete", "sqj/etl")
	sj := k.sequenceNamed("etl")
	want := `{"progress":{"currentIndex":3,"completedIndices":[0,1,2]},"state":{"active":0,"succeeded":3,"failed":0}}`
	if diff := cmp.Diff(want, progressOf(sj)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	conditions := map[string]string{}
	for _, c := range sj.Status.Conditions {
		conditions[c.Type] = string(c.Status) + "/" + c.Reason
	}
	for kind, want := range map[string]string{"Available": "True/Operational", "Progressing": "False/Completed", "Complete": "True/AllJobsCompleted"} {
		if conditions[kind] != want {
			t.Errorf("condition %s: got %q, want %q", kind, conditions[kind], want)
		}
	}
	if sj.Status.ObservedGeneration != sj.Generation || sj.Status.StartTime == nil || sj.Status.CompletionTime == nil {
		t.Errorf("observedGeneration %d of %d, startTime %v, completionTime %v", sj.Status.ObservedGeneration, sj.Generation, sj.Status.StartTime, sj.Status.CompletionTime)
	}
	k.eventually(func() string { // removed by a write that follows the one of the status
		if finalizers := k.sequenceNamed("etl").Finalizers; len(finalizers) > 0 {
			return fmt.Sprintf("finalizers %v, must be none when no child is active", finalizers)
		}
		return ""
	})
	k.checkChildren(sj, []string{"first", "step-1", "third"})
	for _, want := range []string{
		"Normal JobStarted Started job 0", "Normal JobCompleted Job 0 completed successfully",
		"Normal JobStarted Started job 2", "Normal JobCompleted Job 2 completed successfully",
	} {
		k.hasEvent("etl", want)
	}
}

// checkChildren checks the Jobs of a sequence that has completed, which all exist, and their pods.
func (k *kubectl) checkChildren(sj *batchv1alpha1.SequentialJob, steps []string) {
	k.Helper()
	var jobs batchv1.JobList
	k.read(&jobs, "jobs", "--sort-by=.metadata.name")
	if len(jobs.Items) != len(steps) {
		k.Fatalf("%d Jobs, want %d", len(jobs.Items), len(steps))
	}
	for i, job := range jobs.Items {
		if want := fmt.Sprintf("%s-%d", sj.Name, i); job.Name != want {
			k.Errorf("name of Job %d: got %q, want %q", i, job.Name, want)
		}
		owner := metav1.GetControllerOf(&job)
		if owner == nil || owner.UID != sj.UID || owner.Kind != "SequentialJob" || owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
			k.Errorf("owner of Job %s: %+v", job.Name, owner)
		}
		if job.Spec.TTLSecondsAfterFinished != nil || job.Spec.Template.Spec.Containers[0].Env != nil {
			k.Errorf("Job %s has a time to live or an environment: %+v", job.Name, job.Spec)
		}
		want := map[string]string{
			batchv1alpha1.SequentialJobNameKey: sj.Name, batchv1alpha1.SequentialJobUIDKey: string(sj.UID), batchv1alpha1.StepIndexKey: fmt.Sprint(i),
			batchv1alpha1.StepNameKey: steps[i], batchv1alpha1.PartOfKey: sj.Name,
		}
		for key, value := range want {
			if job.Labels[key] != value || job.Spec.Template.Labels[key] != value {
				k.Errorf("label %s of Job %s: %q, of its pods: %q, want %q", key, job.Name, job.Labels[key], job.Spec.Template.Labels[key], value)
			}
		}
	}
	var pods corev1.PodList
	k.read(&pods, "pods")
	for i := 1; i < len(jobs.Items); i++ {
		if before := jobs.Items[i-1].Status.CompletionTime; before == nil || jobs.Items[i].CreationTimestamp.Before(before) {
			k.Errorf("Job %d was created at %v, before the one before it completed at %v", i, jobs.Items[i].CreationTimestamp, before)
		}
	}
	if len(pods.Items) != len(steps) {
		k.Errorf("%d pods, want %d", len(pods.Items), len(steps))
	}
}

// hasEvent waits for an event of a sequence with that type, reason and note, from the controller of sequences.
func (k *kubectl) hasEvent(name, want string) {
	k.Helper()
	k.eventually(func() string {
		var events eventsv1.EventList
		k.read(&events, "events.events.k8s.io")
		var seen []string
		for _, e := range events.Items {
			if e.Regarding.Kind == "SequentialJob" && e.Regarding.Name == name && e.ReportingController == "sequentialjob-controller" {
				line := fmt.Sprintf("%s %s %s", e.Type, e.Reason, e.Note)
				if strings.HasPrefix(line, want) {
					return ""
				}
				seen = append(seen, line)
			}
		}
		return fmt.Sprintf("no event %q, but %q", want, seen)
	})
}

// The example that fails: the second of three containers.
func TestSequenceStopsAtTheStepThatFails(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.sequence("etl", steered, "backoffLimit: 0")
	k.endStep("etl", 0, "succeeded")
	k.endStep("etl", 1, "failed")
	k.wait("--for=condition=Failed", "sqj/etl")
	sj := k.sequenceNamed("etl")
	want := `{"progress":{"currentIndex":1,"completedIndices":[0],"failedIndex":1,"failureReason":"BackoffLimitExceeded"},"state":{"active":0,"succeeded":1,"failed":1}}`
	if diff := cmp.Diff(want, progressOf(sj)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	failed := meta.FindStatusCondition(sj.Status.Conditions, "Failed")
	if got := failed.Reason + ": " + failed.Message; got != "JobFailed: Job 1 failed: BackoffLimitExceeded" {
		t.Errorf("condition Failed: %q", got)
	}
	if got := condition(sj, "Available") + " " + condition(sj, "Progressing"); got != "False/Failed False/JobFailed" {
		t.Errorf("conditions Available and Progressing: %q", got)
	}
	step := sj.Status.Steps[1]
	if step.ExitCode == nil || *step.ExitCode != 1 || step.FirstCause == nil || step.FirstCause.Pod == "" || step.Reason != "BackoffLimitExceeded" {
		t.Errorf("the status of the step lacks the cause: %+v", step)
	}
	if r := k.run("", "get", "job", "etl-2"); !strings.Contains(r.stderr, "NotFound") {
		t.Errorf("the third step must not exist: %s%s", r.stdout, r.stderr)
	}
	k.hasEvent("etl", "Warning JobFailed Job 1 failed: BackoffLimitExceeded")
	got := strings.Fields(strings.Split(k.ok("get", "sqj", "etl"), "\n")[1])
	if diff := cmp.Diff([]string{"etl", "Failed", "2/3", "1"}, got[:4]); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if !strings.Contains(k.ok("get", "all"), "sequentialjob.batch.jobset-apiserver.io/etl") {
		t.Error("kubectl get all does not show the sequence")
	}
}

func TestSequenceThatHasNotStarted(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.sequence("etl", atOnce, "suspend: true")
	sj := k.untilCondition("etl", "Suspended", "True/Suspended")
	if got := k.field("sqj/etl", "{.status.progress}{.status.state}"); got != `{"completedIndices":[]}{"active":0,"failed":0,"succeeded":0}` {
		t.Errorf("progress and state as printed: %s", got)
	}
	if sj.Status.StartTime != nil || sj.Status.Phase != batchv1alpha1.PhaseSuspended {
		t.Errorf("startTime %v, phase %s", sj.Status.StartTime, sj.Status.Phase)
	}
	k.ok("patch", "sqj", "etl", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	k.wait("--for=condition=Complete", "sqj/etl")
}

func TestEmptySequenceIsRefused(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	for _, containers := range []string{"{}", "{containers: []}"} {
		k.refused("{apiVersion: batch.jobset-apiserver.io/v1alpha1, kind: SequentialJob, metadata: {name: none}, spec: "+containers+"}",
			[]string{"create", "-f", "-"}, "spec.containers: Required value", "at least one container must be specified")
	}
}
