// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kubectl"
)

// jobSet creates a JobSet in the queue of the test, with further labels if they are given. It has two Jobs with one pod
// each; a pod requests one CPU and runs until the test ends it.
func jobSet(k *kubectl.Kubectl, name, labels string) {
	k.Helper()
	jobSetOf(k, name, labels, `jobset-apiserver.io/kwok-outcome: running`)
}

// jobSetOf has pods with an annotation that says how they run.
func jobSetOf(k *kubectl.Kubectl, name, labels, annotation string) {
	k.Helper()
	k.OKIn(fmt.Sprintf(`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %s
  labels: {kueue.x-k8s.io/queue-name: team%s}
spec:
  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      spec:
        backoffLimit: 0
        template:
          metadata: {annotations: {%s}}
          spec:
            restartPolicy: Never
            containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]
`, name, labels, annotation), "create", "-f", "-")
}

// runs awaits that all Jobs of a set are ready, and ended that it has ended as the state says.
func runs(k *kubectl.Kubectl, set string) {
	k.Helper()
	k.Awaits("jobset/"+set, "{.spec.suspend} {.status.replicatedJobsStatus[0].ready}", "false 2")
}

func ended(k *kubectl.Kubectl, set, state string) {
	k.Helper()
	k.Awaits("jobset/"+set, "{.status.terminalState}", state)
}

// why awaits a cause in what the plugin says of an object.
func why(k *kubectl.Kubectl, object string, texts ...string) {
	k.Helper()
	k.Eventually(func() string {
		said := k.PluginOK("why", object)
		for _, text := range texts {
			if !strings.Contains(said, text) {
				return fmt.Sprintf("why %s lacks %q:\n%s", object, text, said)
			}
		}
		return ""
	})
}

// The quota of a set that has completed admits the next one, and nothing stays reserved in the end.
func TestJobSetLife(t *testing.T) {
	k := kubectl.New(t, cluster)
	queue(k, 2)
	jobSet(k, "first", "")
	runs(k, "first")
	reserved(k, "2")
	jobSet(k, "second", "")
	why(k, "second", "QuotaNotReserved", "it has place 1 of 1 in the queue")
	if got := k.Field("pods", "{.items[?(@.metadata.labels.jobset\\.sigs\\.k8s\\.io/jobset-name=='second')].metadata.name}"); got != "" {
		t.Errorf("pods without quota: %s", got)
	}
	ends(k, "jobset.sigs.k8s.io/jobset-name=first", "succeeded")
	runs(k, "second")
	ended(k, "first", "Completed")
	ends(k, "jobset.sigs.k8s.io/jobset-name=second", "succeeded")
	ended(k, "second", "Completed")
	reserved(k, "0")
}

// priority is a WorkloadPriorityClass, of which all tests use the same.
const priority = `apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 100
`

// podsOf are the names of the pods of a set that run.
func podsOf(k *kubectl.Kubectl, set string) []string {
	k.Helper()
	return strings.Fields(k.OK("get", "pods", "-l", "jobset.sigs.k8s.io/jobset-name="+set, "--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}"))
}

// A set of higher priority takes the quota of another one, which begins again when it has ended.
func TestJobSetIsPreempted(t *testing.T) {
	k := kubectl.New(t, cluster)
	queue(k, 2)
	k.OKIn(priority, "apply", "-f", "-")
	jobSet(k, "low", "")
	runs(k, "low")
	jobSet(k, "high", ", kueue.x-k8s.io/priority-class: high")
	runs(k, "high")
	k.Awaits("jobset/low", "{.spec.suspend} {.status.conditions[?(@.type=='Suspended')].status}", "true True")
	why(k, "low", "WorkloadPreempted")
	if got := podsOf(k, "low"); len(got) > 0 {
		t.Errorf("pods without quota: %v", got)
	}
	ends(k, "jobset.sigs.k8s.io/jobset-name=high", "succeeded")
	ended(k, "high", "Completed")
	runs(k, "low")
	if got, want := k.Field("jobset/low", "{.status.attempts[*].trigger}"), "Start Preemption"; got != want {
		t.Errorf("the attempts begin by %q, want %q", got, want)
	}
	ends(k, "jobset.sigs.k8s.io/jobset-name=low", "succeeded")
	ended(k, "low", "Completed")
	reserved(k, "0")
}

// A set whose pods are not ready in time has lost its quota for that, and not to another set.
func TestJobSetIsNotReadyInTime(t *testing.T) {
	configured(t, "waitForPodsReady: {timeout: 10s, requeuingStrategy: {backoffBaseSeconds: 600}}\n")
	k := kubectl.New(t, cluster)
	queue(k, 2)
	jobSetOf(k, "train", "", `jobset-apiserver.io/kwok-start-after: "1h"`)
	k.Awaits("jobset/train", "{.spec.suspend} {.status.conditions[?(@.type=='Suspended')].status}", "true True")
	why(k, "train", "PodsNotReadyInTime", "Kueue took the quota back", "because the pods were not ready in time")
	reserved(k, "0")
}

// A queue that is drained stops its sets, and lets them run again afterwards.
func TestJobSetIsDrained(t *testing.T) {
	k := kubectl.New(t, cluster)
	queue(k, 2)
	jobSet(k, "train", "")
	runs(k, "train")
	stop := func(policy string) {
		k.OK("patch", "clusterqueue", k.Namespace, "--type=merge", "-p", `{"spec":{"stopPolicy":"`+policy+`"}}`)
	}
	stop("HoldAndDrain")
	k.Awaits("jobset/train", "{.spec.suspend} {.status.conditions[?(@.type=='Suspended')].status}", "true True")
	reserved(k, "0")
	why(k, "train", "QueueStopped")
	stop("None")
	runs(k, "train")
	ends(k, "jobset.sigs.k8s.io/jobset-name=train", "succeeded")
	ended(k, "train", "Completed")
	reserved(k, "0")
}

// A set that is restarted after one of its Jobs has succeeded runs with less quota than it uses, because Kueue refuses
// its own write of the Workload, and cannot be suspended. The command that why suggests makes Kueue admit it again.
func TestJobSetIsRestartedAfterAJobHasSucceeded(t *testing.T) {
	k := kubectl.New(t, cluster)
	queue(k, 2)
	jobSet(k, "train", "")
	runs(k, "train")
	ends(k, "jobset.sigs.k8s.io/job-index=0", "succeeded")
	k.Awaits("jobset/train", "{.status.replicatedJobsStatus[0].succeeded}", "1")
	reserved(k, "1")
	if got := k.Plugin("restart", "train").Stderr; !strings.Contains(got, `Warning: Kueue took back the quota of the Jobs that had succeeded and cannot reserve it again in queue "team"`) {
		t.Errorf("restart does not say what Kueue cannot do: %s", got)
	}
	runs(k, "train")
	workload := k.Field("workloads", "{.items[0].metadata.name}")
	why(k, "train", "Kueue holds no quota for 1 pod, which had succeeded before a restart", "delete workload "+workload)

	k.OK("delete", "workload", workload)
	runs(k, "train")
	reserved(k, "2")
	k.OK("patch", "clusterqueue", k.Namespace, "--type=merge", "-p", `{"spec":{"stopPolicy":"HoldAndDrain"}}`)
	k.Awaits("jobset/train", "{.spec.suspend}", "true")
	reserved(k, "0")
}

// A preview finds nothing to refuse in a set that Kueue admits, nor in one without a queue.
func TestPreviewBesideKueue(t *testing.T) {
	k := kubectl.New(t, cluster)
	queue(k, 2)
	for _, queue := range []string{"", "  labels: {kueue.x-k8s.io/queue-name: team}\n"} {
		file := filepath.Join(t.TempDir(), "set.yaml")
		manifest := `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: train
` + queue + `spec:
  replicatedJobs:
  - name: workers
    template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}}
`
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		if said := k.PluginOK("preview", "-f", file); strings.Contains(said, "efused") {
			t.Errorf("preview with %q:\n%s", queue, said)
		}
	}
}
