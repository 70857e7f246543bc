// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kubectl"
)

// sequence makes a SequentialJob of two steps, with further lines in its metadata. The first step needs one CPU, the second one two.
func sequence(k *kubectl.Kubectl, metadata string) {
	k.Helper()
	k.OKIn(fmt.Sprintf(`apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
metadata:
  name: etl
%s
spec:
  steps:
  - name: extract
    job: {spec: {template: &pod {metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}, spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]}}}}
  - name: load
    job: {spec: {parallelism: 2, completions: 2, template: *pod}}
`, metadata), "create", "-f", "-")
}

// managesAll has Kueue manage what names no queue, in the namespaces that managed makes.
const managesAll = `manageJobsWithoutQueueName: true
managedJobsNamespaceSelector: {matchLabels: {managed: "yes"}}
`

func managed(t *testing.T) *kubectl.Kubectl {
	t.Helper()
	k := kubectl.New(t, cluster)
	k.OK("label", "namespace", k.Namespace, "managed=yes")
	return k
}

// A set that names no queue, and that Kueue suspends all the same, is no set that its user has suspended.
func TestJobSetWithoutQueue(t *testing.T) {
	configured(t, managesAll)
	k := managed(t)
	queue(k, 2)
	k.OKIn(`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - name: workers
    replicas: 2
    template: {spec: {template: {metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}, spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]}}}}
`, "create", "-f", "-")
	k.Awaits("jobset/train", "{.spec.suspend}", "true")
	why(k, "train", "QueueMissing", "suspended by Kueue, which runs with manageJobsWithoutQueueName", "label jobset train kueue.x-k8s.io/queue-name=QUEUE")
	k.OK("label", "jobset/train", "kueue.x-k8s.io/queue-name=team")
	runs(k, "train")
	reserved(k, "2")
}

// Each step of a sequence is admitted by itself.
func TestSequenceLife(t *testing.T) {
	k := kubectl.New(t, cluster)
	queue(k, 2)
	sequence(k, "  labels: {kueue.x-k8s.io/queue-name: team}")
	k.Awaits("job/etl-0", "{.spec.suspend} {.status.ready}", "false 1")
	reserved(k, "1")
	ends(k, "job-name=etl-0", "succeeded")
	k.Awaits("job/etl-1", "{.spec.suspend} {.status.ready}", "false 2")
	reserved(k, "2")
	ends(k, "job-name=etl-1", "succeeded")
	k.Awaits("sequentialjob/etl", "{.status.phase}", "Completed")
	reserved(k, "0")
}

// A sequence whose Job cannot be created while Kueue is away has not failed, and goes on afterwards.
func TestSequenceWhileKueueIsAway(t *testing.T) {
	k := kubectl.New(t, cluster)
	queue(k, 2)
	if err := kueue.Stop(); err != nil {
		t.Fatal(err)
	}
	sequence(k, "  labels: {kueue.x-k8s.io/queue-name: team}")
	k.Awaits("sequentialjob/etl", "{.status.conditions[?(@.type=='ResourcesUnavailable')].reason}", "ClusterOverloaded")
	why(k, "sqj/etl", "ClusterOverloaded", "failed calling webhook")
	if got := k.Field("sequentialjob/etl", "{.status.conditions[?(@.type=='Failed')].status}"); got == "True" {
		t.Error("the sequence has failed")
	}
	if err := kueue.Start(context.Background(), configuration); err != nil {
		t.Fatal(err)
	}
	k.Awaits("job/etl-0", "{.spec.suspend} {.status.ready}", "false 1")
	reserved(k, "1")
}

// Kueue suspends Jobs that name no queue if it is told to. The controller does not fight with it, and says who suspends the step.
func TestSequenceWithoutQueue(t *testing.T) {
	configured(t, managesAll)
	k := managed(t)
	queue(k, 2)
	sequence(k, "")
	k.Awaits("sequentialjob/etl", "{.status.conditions[?(@.type=='Progressing')].reason}", "SuspendedByOthers")
	why(k, "sqj/etl", "JobSuspendedByOther", "kueue", "label job/etl-0 kueue.x-k8s.io/queue-name=QUEUE")
	generation := k.Field("job/etl-0", "{.metadata.generation}")
	time.Sleep(stableTime)
	if now := k.Field("job/etl-0", "{.metadata.generation}"); now != generation {
		t.Errorf("the generation of the Job went from %s to %s", generation, now)
	}
	t.Logf("the Job has generation %s after the fight", generation)
	if n, err := strconv.Atoi(generation); err != nil || n > 10 {
		t.Errorf("the Job has generation %s", generation)
	}
	// The command that why suggests.
	k.OK("label", "job/etl-0", "kueue.x-k8s.io/queue-name=team")
	k.Awaits("job/etl-0", "{.spec.suspend} {.status.ready}", "false 1")
	k.Awaits("sequentialjob/etl", "{.status.phase}", "Running")
	reserved(k, "1")
}
