// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// What a change does, by update strategy and by the step that it changes, while the second of three steps runs.
func TestSequenceChangesWhileAStepRuns(t *testing.T) {
	t.Parallel()
	const changed = "busybox:changed"
	for strategy, tc := range map[string]struct {
		// images are the images of the Jobs in the end, by the index of the step that was changed.
		images map[int]string
		// refused are the steps that cannot be changed, with a part of the message.
		refused map[int]string
		// attempts are the attempts of the second step after it was changed.
		attempts int32
	}{
		"Continue": {
			images:  map[int]string{1: "busybox busybox busybox", 2: "busybox busybox " + changed},
			refused: map[int]string{0: "spec.containers[0]"}, attempts: 1,
		},
		"Restart": {
			images:  map[int]string{1: "busybox " + changed + " busybox", 2: "busybox busybox " + changed},
			refused: map[int]string{0: "spec.containers[0]"}, attempts: 2,
		},
		"Forbid": {refused: map[int]string{0: "spec.containers", 1: "spec.containers", 2: "spec.containers"}},
	} {
		for step := range 3 {
			t.Run(fmt.Sprintf("%s/step %d", strategy, step), func(t *testing.T) {
				t.Parallel()
				k := newKubectl(t)
				k.sequence("etl", steered, "updateStrategy: {type: "+strategy+"}")
				k.endStep("etl", 0, "succeeded")
				k.untilStep("etl", 1, batchv1alpha1.StepRunning)
				patch := []string{"patch", "sqj", "etl", "--type=json", "-p",
					fmt.Sprintf(`[{"op": "replace", "path": "/spec/containers/%d/image", "value": %q}]`, step, changed)}
				if part, refused := tc.refused[step]; refused {
					k.refused("", patch, part)
					return
				}
				k.ok(patch...)
				k.hasEvent("etl", "Warning SpecChanged SequentialJob spec changed while jobs running")
				if step == 1 {
					k.untilAttempt("etl", 1, tc.attempts)
				}
				k.endStep("etl", 1, "succeeded")
				k.endStep("etl", 2, "succeeded")
				k.wait("--for=condition=Complete", "sqj/etl")
				if got := k.ok("get", "jobs", "-o", "jsonpath={.items[*].spec.template.spec.containers[0].image}"); got != tc.images[step] {
					t.Errorf("images of the Jobs: got %q, want %q", got, tc.images[step])
				}
			})
		}
	}
}

// untilStep waits until a step is in a state.
func (k *kubectl) untilStep(name string, index int, want batchv1alpha1.StepState) {
	k.Helper()
	k.eventually(func() string {
		steps := k.sequenceNamed(name).Status.Steps
		if len(steps) <= index || steps[index].State != want {
			return fmt.Sprintf("step %d is not %s: %+v", index, want, steps)
		}
		return ""
	})
}

// untilAttempt waits until the Job of a step belongs to an attempt.
func (k *kubectl) untilAttempt(name string, index int, attempt int32) {
	k.Helper()
	k.eventually(func() string {
		r := k.run("", "get", "job", fmt.Sprintf("%s-%d", name, index), "-o", `jsonpath={.metadata.labels.batch\.jobset-apiserver\.io/step-attempt}`)
		if r.stdout != fmt.Sprint(attempt) {
			return fmt.Sprintf("attempt of the Job is %q, must become %d: %s", r.stdout, attempt, r.stderr)
		}
		return ""
	})
}

// A sequence that is deleted while a step runs stops it, leaves nothing behind, and says so.
func TestDeletedSequenceStopsItsStep(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.sequence("etl", steered+`, jobset-apiserver.io/kwok-stop-after: "2s"`)
	k.endStep("etl", 0, "succeeded")
	k.untilStep("etl", 1, batchv1alpha1.StepRunning)
	if got := k.sequenceNamed("etl").Finalizers; !slices.Contains(got, batchv1alpha1.SequentialJobFinalizer) {
		t.Errorf("finalizers while a child is active: %v", got)
	}
	k.delete("sqj", "etl")
	noChildren(k)
	k.hasEvent("etl", "Normal JobStopped Stopped job 1")
}

// A namespace does not hang on a sequence that runs in it.
func TestNamespaceWithARunningSequenceGoes(t *testing.T) {
	tier.OnRequest(t, "deletes a namespace with much in it")
	t.Parallel()
	k := newKubectl(t)
	k.sequence("etl", steered)
	k.untilStep("etl", 0, batchv1alpha1.StepRunning)
	k.delete("namespace", k.namespace)
}

// A Job that is deleted while it runs is run again; one that is deleted after its end is not.
func TestJobsThatVanish(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.sequence("etl", steered)
	k.endStep("etl", 0, "succeeded")
	k.untilStep("etl", 1, batchv1alpha1.StepRunning)
	k.ok("delete", "job", "etl-0", "etl-1", "--wait=false")
	k.wait("--for=delete", "job/etl-0")
	k.untilAttempt("etl", 1, 2)
	k.endStep("etl", 1, "succeeded")
	k.endStep("etl", 2, "succeeded")
	k.wait("--for=condition=Complete", "sqj/etl")
	if got := k.ok("get", "jobs", "-o", "jsonpath={.items[*].metadata.name}"); got != "etl-1 etl-2" {
		t.Errorf("Jobs in the end: %s", got)
	}
	if got := k.sequenceNamed("etl").Status.Steps; got[0].Attempts != 1 || got[1].Attempts != 2 {
		t.Errorf("attempts: %+v", got)
	}
}
