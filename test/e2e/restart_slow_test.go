// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pairs is a set of four Jobs of two pods, all of which run until their annotations change.
const pairs = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  failurePolicy: {maxRestarts: 1}
  replicatedJobs:
  - name: workers
    replicas: 4
    template:
      spec:
        completionMode: Indexed
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}
          spec:
            restartPolicy: Never
            containers: [{name: main, image: registry.example/trainer:v1}]
`

// TestSlowPodsDelayOnlyTheirJobs has one pod of a Job fail while the other one takes an hour to stop, as does a pod of another Job. The set
// restarts at once, and each Job is created and ready as soon as its own pods are gone.
func TestSlowPodsDelayOnlyTheirJobs(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(pairs, "create", "-f", "-")
	jobs := func(want ...string) {
		t.Helper()
		k.eventually(func() string {
			got := k.ok("get", "jobs", "-o", `jsonpath={range .items[*]}{.metadata.name}:{.metadata.labels.jobset\.sigs\.k8s\.io/restart-attempt}:{.status.ready}{"\n"}{end}`)
			return cmp.Diff(want, strings.Fields(got))
		})
	}
	jobs("train-workers-0:0:2", "train-workers-1:0:2", "train-workers-2:0:2", "train-workers-3:0:2")
	pod := func(job, index string) string {
		t.Helper()
		return strings.TrimSpace(k.ok("get", "pods", "-l", "job-name=train-workers-"+job+",batch.kubernetes.io/job-completion-index="+index, "-o", "name"))
	}
	slow0, slow1, failed := pod("0", "0"), pod("1", "0"), pod("0", "1")
	k.ok("annotate", slow0, slow1, "jobset-apiserver.io/kwok-stop-after=1h")
	k.ok("annotate", failed, "--overwrite", "jobset-apiserver.io/kwok-outcome=failed", "jobset-apiserver.io/kwok-run-seconds=0")

	stops := func(name string) {
		t.Helper()
		if k.field("job/"+name, "{.metadata.deletionTimestamp}") == "" {
			t.Errorf("job %s is not being deleted", name)
		}
	}
	// The pods of the Jobs that stop may count as ready or not.
	k.eventually(func() string {
		got := k.ok("get", "jobs", "-o", `jsonpath={range .items[*]}{.metadata.name}:{.metadata.labels.jobset\.sigs\.k8s\.io/restart-attempt}{"\n"}{end}`)
		return cmp.Diff([]string{"train-workers-0:0", "train-workers-1:0", "train-workers-2:1", "train-workers-3:1"}, strings.Fields(got))
	})
	k.wait("--for=jsonpath={.status.ready}=2", "job/train-workers-2", "job/train-workers-3")
	stops("train-workers-0")
	stops("train-workers-1")
	if got := k.field("jobset/train", "{.status.attempts[0].firstCause.pod}"); "pod/"+got != failed {
		t.Errorf("first cause: got pod %q, want %s", got, failed)
	}

	k.ok("delete", slow1, "--grace-period=0", "--force", "--wait=false")
	k.wait("--for=jsonpath={.metadata.labels.jobset\\.sigs\\.k8s\\.io/restart-attempt}=1", "job/train-workers-1")
	k.wait("--for=jsonpath={.status.ready}=2", "job/train-workers-1")
	stops("train-workers-0")
	k.ok("delete", slow0, "--grace-period=0", "--force", "--wait=false")
	jobs("train-workers-0:1:2", "train-workers-1:1:2", "train-workers-2:1:2", "train-workers-3:1:2")
	k.wait("--for=condition=RestartingJobSet=false", "jobset/train")
}
