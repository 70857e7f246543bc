// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package trainer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kubectl"
)

// trainJob creates a TrainJob with two nodes and a runtime in its namespace. Its pods run until the test ends them.
func trainJob(k *kubectl.Kubectl, name string) {
	k.Helper()
	k.OKIn(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: waits}
spec:
  mlPolicy: {numNodes: 1, torch: {numProcPerNode: auto}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            backoffLimit: 0
            template:
              metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}
              spec: {containers: [{name: node, image: busybox}]}
`, "apply", "-f", "-")
	k.OKIn(fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s}
spec:
  runtimeRef: {name: waits, kind: TrainingRuntime}
  trainer: {numNodes: 2}
`, name), "create", "-f", "-")
}

// runs awaits that both pods of a TrainJob are ready.
func runs(k *kubectl.Kubectl, name string) {
	k.Helper()
	k.Awaits("jobset/"+name, "{.spec.suspend} {.status.replicatedJobsStatus[0].ready}", "false 1")
	k.Awaits("job/"+name+"-node-0", "{.status.ready}", "2")
}

// condition awaits a condition of a TrainJob that is True.
func condition(k *kubectl.Kubectl, name, kind, reason string) {
	k.Helper()
	k.Awaits("trainjob/"+name, fmt.Sprintf("{.status.conditions[?(@.type=='%s')].status} {.status.conditions[?(@.type=='%[1]s')].reason}", kind), "True "+reason)
}

func ends(k *kubectl.Kubectl, name, outcome string) {
	k.Helper()
	k.OK("annotate", "pods", "-l", "jobset.sigs.k8s.io/jobset-name="+name, "--overwrite", "jobset-apiserver.io/kwok-outcome="+outcome)
}

// A runtime that comes with Trainer runs to its end.
func TestRuntimeOfTheRelease(t *testing.T) {
	k := kubectl.New(t, cluster)
	k.OKIn(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: torch}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 3}
`, "create", "-f", "-")
	condition(k, "torch", "Complete", "AllJobsCompleted")
	if got, want := k.Field("jobset/torch", "{.status.terminalState} {.metadata.ownerReferences[0].kind}"), "Completed TrainJob"; got != want {
		t.Errorf("the JobSet is %q, want %q", got, want)
	}
	if got, want := k.Field("job/torch-node-0", "{.status.succeeded}"), "3"; got != want {
		t.Errorf("%s pods have succeeded, want %s", got, want)
	}
}

// The status of a TrainJob follows that of its JobSet.
func TestTrainJobFails(t *testing.T) {
	k := kubectl.New(t, cluster)
	trainJob(k, "train")
	runs(k, "train")
	ends(k, "train", "failed")
	condition(k, "train", "Failed", "FailedJobs")
	if said := k.PluginOK("why", "train"); !strings.Contains(said, "exit code 1") {
		t.Errorf("why does not name the exit code:\n%s", said)
	}
}

// A TrainJob suspends and resumes its JobSet, whose attempts say so, and both go with it.
func TestTrainJobIsSuspendedAndDeleted(t *testing.T) {
	k := kubectl.New(t, cluster)
	trainJob(k, "train")
	runs(k, "train")
	suspend := func(suspended string) {
		k.OK("patch", "trainjob", "train", "--type=merge", "-p", `{"spec":{"suspend":`+suspended+`}}`)
	}
	suspend("true")
	condition(k, "train", "Suspended", "Suspended")
	k.Awaits("jobset/train", "{.spec.suspend} {.status.conditions[?(@.type=='Suspended')].status}", "true True")
	if said := k.PluginOK("why", "train"); !strings.Contains(said, "SuspendedByOwner") || !strings.Contains(said, "TrainJob train") {
		t.Errorf("why does not name the owner:\n%s", said)
	}
	suspend("false")
	runs(k, "train")
	// Queues suspend TrainJobs in the same way.
	if got, want := k.Field("jobset/train", "{.status.attempts[*].trigger}"), "Start Preemption"; got != want {
		t.Errorf("the attempts begin by %q, want %q", got, want)
	}
	k.OK("delete", "trainjob/train")
	k.Eventually(func() string { return k.OK("get", "jobsets,jobs,pods", "-o", "name") })
}
