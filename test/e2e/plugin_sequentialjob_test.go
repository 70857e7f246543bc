// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// contains reports the texts that the output of the plugin lacks.
func (k *kubectl) contains(args []string, texts ...string) {
	k.Helper()
	out := k.pluginOK(args...)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			k.Errorf("kubectl jobset %s does not show %q:\n%s", strings.Join(args, " "), text, out)
		}
	}
}

// sequenceTree waits until the tree of the sequence has these lines, without what differs from run to run.
func (k *kubectl) sequenceTree(name string, want ...string) {
	k.Helper()
	k.eventually(func() string {
		got := figures(k.pluginOK("tree", "sqj/"+name))
		for _, line := range want {
			if !strings.Contains(strings.Join(got, "\n"), line) {
				return fmt.Sprintf("no line %q in:\n%s", line, strings.Join(got, "\n"))
			}
		}
		return ""
	})
}

func TestPluginViewsOfARunningSequence(t *testing.T) {
	tier.OnRequest(t, "more views of sequences")
	t.Parallel()
	k := newKubectl(t)
	manifest := fmt.Sprintf(threeContainers, "etl", "backoffLimit: 0", steered)
	before := k.pluginIn(manifest, "preview", "-f", "-")
	if want := "The sequence would run 3 steps one after another: etl-0, etl-1, etl-2."; before.code != 0 || !strings.Contains(before.stdout, want) {
		t.Errorf("the preview does not end with %q, exit code %d:\n%s%s", want, before.code, before.stdout, before.stderr)
	}
	k.okIn(manifest, "create", "-f", "-")
	k.endStep("etl", 0, "succeeded")
	k.untilStep("etl", 1, batchv1alpha1.StepRunning)
	k.sequenceTree("etl", "sequentialjob/etl Running 1/3 0 AGE step 2/3 step-1", "├─ step/first Succeeded 0 AGE", "│ └─ job/etl-0 Complete 1/1",
		"├─ step/step-1 Running 0 AGE", "│ └─ job/etl-1", "└─ step/third Pending")
	k.eventually(func() string {
		if out := k.pluginOK("why", "sqj/etl"); !strings.Contains(out, "runs: step 2/3 (step-1), began") {
			return out
		}
		return ""
	})
	k.contains([]string{"timeline", "sequentialjob/etl"}, "/etl: Running, step 2/3 step-1", "1  first", "Succeeded", "3  third   -")
	k.contains([]string{"events", "sqj/etl"}, "Started job 0", "Job 0 completed successfully", "Job/etl-0", "Pod/etl-1-")
	report := struct {
		Kind  string
		Steps []struct{ Name, State string }
	}{}
	if err := json.Unmarshal([]byte(k.pluginOK("tree", "sqj/etl", "-o", "json")), &report); err != nil || report.Kind != "SequentialJobTree" || len(report.Steps) != 3 || report.Steps[1].State != "Running" {
		t.Errorf("tree -o json: %+v, error %v", report, err)
	}
	changed := strings.Replace(manifest, "image: busybox, command: [echo, three]", "image: busybox:2, command: [echo, three]", 1)
	after := k.pluginIn(changed, "preview", "-f", "-")
	if want := "steps that start from now on have it"; after.code != 0 || !strings.Contains(after.stdout, want) {
		t.Errorf("the preview of a change does not say %q, exit code %d:\n%s%s", want, after.code, after.stdout, after.stderr)
	}
}

func TestPluginViewsOfAFailedSequence(t *testing.T) {
	tier.OnRequest(t, "more views of sequences")
	t.Parallel()
	k := newKubectl(t)
	k.sequence("etl", steered, "backoffLimit: 0")
	k.endStep("etl", 0, "succeeded")
	k.endStep("etl", 1, "failed")
	k.wait("--for=condition=Failed", "sqj/etl")
	k.contains([]string{"why", "sqj/etl"}, "Failed (BackoffLimitExceeded), step 2/3 step-1", "ExitCode\n", "ended with exit code 1",
		"kubectl jobset -n "+k.namespace+" retry sqj/etl", "retry sqj/etl --from-step first")
	k.sequenceTree("etl", "sequentialjob/etl Failed 1/3", "step/step-1 Failed", "step/third Pending not run: the sequence has finished")
	k.contains([]string{"timeline", "sqj/etl"}, "Failed (BackoffLimitExceeded), step 2/3 step-1", "first cause: pod etl-1-")
	k.contains([]string{"events", "sqj/etl"}, "Job 1 failed: BackoffLimitExceeded")
}

func TestPluginViewsOfASuspendedSequence(t *testing.T) {
	tier.OnRequest(t, "more views of sequences")
	t.Parallel()
	k := newKubectl(t)
	k.sequence("etl", steered)
	k.untilStep("etl", 0, batchv1alpha1.StepRunning)
	k.pluginOK("suspend", "sqj/etl", "--reason", "disk is full")
	k.untilStep("etl", 0, batchv1alpha1.StepSuspended)
	k.contains([]string{"why", "sqj/etl"}, "SuspendedByUser\n", `"disk is full"`, "resume sqj/etl")
	k.sequenceTree("etl", "sequentialjob/etl Suspended 0/3", "step/first Suspended", "job/etl-0 Suspended")
	k.contains([]string{"timeline", "sqj/etl"}, "/etl: Suspended, step 1/3 first")
}

func TestPluginLogsOfASequence(t *testing.T) {
	tier.OnRequest(t, "more views of sequences")
	t.Parallel()
	k := newKubectl(t)
	l := newKubelet(t, k)
	t.Cleanup(func() { k.run("", "delete", "sequentialjobs", "--all", "--timeout=5m") })
	manifest := strings.Replace(fmt.Sprintf(threeContainers, "etl", "", steered), "      restartPolicy: Never",
		"      restartPolicy: Never\n      "+strings.ReplaceAll(l.here(), "\n", "\n      "), 1)
	k.okIn(manifest, "create", "-f", "-")
	pod := func(index int) (name string) {
		k.untilStep("etl", index, batchv1alpha1.StepRunning)
		k.eventually(func() string {
			name = k.ok("get", "pods", "-l", fmt.Sprintf("%s=%d", batchv1alpha1.StepIndexKey, index), "--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}")
			if name == "" {
				return fmt.Sprintf("step %d has no pod that runs", index)
			}
			return ""
		})
		return name
	}
	first := pod(0)
	l.write(first, "first", "one")
	l.end(first, "first")
	k.contains([]string{"logs", "sqj/etl"}, "[first] one\n")
	k.endStep("etl", 0, "succeeded")
	second := pod(1)
	l.write(second, "step-1", "two")
	l.end(second, "step-1")
	k.contains([]string{"logs", "sqj/etl"}, "[step-1] two\n")
	k.contains([]string{"logs", "sqj/etl", "--step", "0"}, "[first] one\n")
	k.contains([]string{"logs", "sqj/etl", "--all-steps"}, "[first] one\n[step-1] two\n")
	if r := k.plugin("logs", "sqj/etl", "--step", "fourth"); r.code != 1 || !strings.Contains(r.stderr, "--step: must be one of first, step-1, third") {
		t.Errorf("an unknown step: exit code %d\n%s", r.code, r.stderr)
	}
}
