// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

const zeros = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: zeros}
spec:
  suspend: true
  failurePolicy: {maxRestarts: 0}
  coordinator: {replicatedJob: workers, jobIndex: 0, podIndex: 0}
  replicatedJobs:
  - name: workers
    template:
      spec:
        parallelism: 1
        completions: 1
        podFailurePolicy:
          rules:
          - {action: FailJob, onExitCodes: {operator: In, values: [42]}}
        template: {spec: {restartPolicy: Never, containers: [{name: main, image: registry.example/trainer:v1}]}}
`

// zeroJob is a Job with the rule of the set.
const zeroJob = `apiVersion: batch/v1
kind: Job
metadata: {name: zeros}
spec:
  suspend: true
  podFailurePolicy:
    rules:
    - {action: FailJob, onExitCodes: {operator: In, values: [42]}}
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: registry.example/trainer:v1}]}}
`

// Zeros of a manifest read back as they were written, so that applying it again changes nothing. An empty list in a rule reads back as absent
// in a JobSet, because it does so in a Job.
func TestApplyOfZerosAndEmptyLists(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	for name, text := range map[string]string{"job/zeros": zeroJob, "jobset/zeros": zeros} {
		k.okIn(text, "apply", "-f", "-")
		if out := k.okIn(text, "apply", "-f", "-"); !strings.Contains(out, "unchanged") {
			t.Errorf("%s, second apply: %s", name, out)
		}
		if r := k.run(text, "diff", "-f", "-"); r.code != 0 {
			t.Errorf("%s, diff: exit code %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
		for _, manager := range []string{"a", "b", "a"} {
			if r := k.run(strings.Replace(text, "name: zeros", "name: shared", 1), "apply", "--server-side", "--field-manager="+manager, "-f", "-"); r.code != 0 {
				t.Errorf("%s, server-side apply by %s: %s", name, manager, r.stderr)
			}
		}
		empty := strings.NewReplacer("name: zeros", "name: empty", "FailJob,", "FailJob, onPodConditions: [],").Replace(text)
		k.okIn(empty, "apply", "-f", "-")
		if out := k.okIn(empty, "apply", "-f", "-"); !strings.Contains(out, "configured") {
			t.Errorf("%s, second apply with an empty list: %s", name, out)
		}
	}
	const path = "{.spec.failurePolicy.maxRestarts} {.spec.coordinator.jobIndex} {.spec.coordinator.podIndex}"
	if got := k.field("jobset/zeros", path); got != "0 0 0" {
		t.Errorf("read back: %q, want 0 0 0", got)
	}
	// A manifest without the zeros means the same.
	bare := strings.NewReplacer("{maxRestarts: 0}", "{restartStrategy: Recreate}", ", jobIndex: 0, podIndex: 0", "", "name: zeros", "name: shared").Replace(zeros)
	k.okIn(bare, "apply", "--server-side", "--field-manager=a", "-f", "-")
	if got := k.field("jobset/shared", path); got != "0 0 0" {
		t.Errorf("after an apply without zeros: %q, want 0 0 0", got)
	}
}
