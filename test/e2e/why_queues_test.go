// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
)

// What a queue decided. Kueue itself does not run here: its objects are written as it would write them.
var queueFaults = map[string]fault{
	"the queue has no quota for the set": {
		seed: queuedIn("", "", `{type: QuotaReserved, status: "False", reason: Pending, lastTransitionTime: "2026-01-01T00:00:00Z",
      message: "couldn't assign flavors to pod set workers: insufficient quota for cpu"}`),
		want: why.QuotaNotReserved, words: []string{"research", "insufficient quota for cpu"},
	},
	"the set made room for another one": {
		seed: inTurn(queuedIn("", "", `{type: Evicted, status: "True", reason: Preempted, lastTransitionTime: "2026-01-01T00:00:00Z",
      message: "Preempted to accommodate a workload (UID: 1-2-3, JobUID: 4-5-6) due to prioritization in the ClusterQueue"}`), func(k *kubectl) {
			k.okIn("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {name: jobset-big-1a2b3, labels: {kueue.x-k8s.io/job-uid: 4-5-6}}\n", "create", "-f", "-")
		}),
		want: why.WorkloadPreempted, words: []string{"by the Workload jobset-big-1a2b3 (prioritization in the ClusterQueue)", "research"},
	},
	"an administrator stopped the queue": {
		seed: queuedIn("stopPolicy: HoldAndDrain", "", ""),
		want: why.QueueStopped, words: []string{"ClusterQueue", "HoldAndDrain"},
	},
	"the queue is not active": {
		seed: queuedIn("", `{type: Active, status: "False", reason: FlavorNotFound, message: "references missing ResourceFlavor(s): gpu", lastTransitionTime: "2026-01-01T00:00:00Z"}`, ""),
		want: why.QueueStopped, words: []string{"not active", "missing ResourceFlavor(s): gpu"},
	},
	"the queue does not exist": {
		seed: makes(queuedSet),
		want: why.QueueMissing, words: []string{"no queue (LocalQueue) research"},
	},
	"the queue leads nowhere": {
		seed: inTurn(makes(queuedSet), func(k *kubectl) {
			k.okIn(localQueue("nowhere"), "create", "-f", "-")
		}),
		want: why.QueueMissing, words: []string{"ClusterQueue nowhere, which does not exist"},
	},
	"Kueue has made no Workload": {
		seed: inTurn(makes(queuedSet), func(k *kubectl) {
			clusterQueue(k, "", "")
			k.okIn(localQueue(k.namespace), "create", "-f", "-")
		}),
		want: why.WorkloadMissing, words: []string{"no Workload"},
	},
	"the Workload was deactivated": {
		seed: inTurn(queuedIn("", "", ""), func(k *kubectl) {
			k.ok("patch", "workload", "jobset-train", "--type=merge", "-p", `{"spec":{"active":false}}`)
		}),
		want: why.WorkloadDeactivated, words: []string{"jobset-train", "deactivated"},
	},
	"an admission check is open": {
		seed: inTurn(queuedIn("", "", `{type: QuotaReserved, status: "True", reason: QuotaReserved, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}`), func(k *kubectl) {
			k.ok("patch", "workload", "jobset-train", "--type=merge", "-p",
				`{"status":{"admissionChecks":[{"name":"provision","state":"Pending","message":"waits for nodes"}]}}`)
		}),
		want: why.AdmissionCheckPending, words: []string{"admission check provision"},
	},
}

// queuedSet makes a set wait in the queue research.
func queuedSet(js *jobsetv1alpha2.JobSet) {
	js.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "research"}
	js.Spec.Suspend = ptr.To(true)
}

// queuedIn makes a set with a Workload, in a queue. Arguments are lines of the spec and conditions of the ClusterQueue, and
// conditions of the Workload.
func queuedIn(spec, queueCondition, workloadCondition string) func(*kubectl) {
	return func(k *kubectl) {
		k.Helper()
		makes(queuedSet)(k)
		clusterQueue(k, spec, queueCondition)
		k.okIn(localQueue(k.namespace), "create", "-f", "-")
		k.okIn(fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  name: jobset-train
  labels: {kueue.x-k8s.io/job-uid: %[1]s}
  ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train, uid: %[1]s, controller: true}]
spec: {queueName: research, active: true}
status:
  conditions: [%[2]s]
`, k.field("jobset/train", "{.metadata.uid}"), workloadCondition), "create", "-f", "-")
	}
}

func localQueue(clusterQueue string) string {
	return fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: research}
spec: {clusterQueue: %s}
status: {conditions: [{type: Active, status: "True", reason: Ready, message: "Can submit new workloads to localQueue"}]}
`, clusterQueue)
}

// clusterQueue makes the queue behind that of the test, named like its namespace.
func clusterQueue(k *kubectl, spec, condition string) {
	k.Helper()
	if condition == "" {
		condition = `{type: Active, status: "True", reason: Ready, message: "Can admit new workloads", lastTransitionTime: "2026-01-01T00:00:00Z"}`
	}
	if spec == "" {
		spec = "stopPolicy: None"
	}
	k.okIn(fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %s}
spec:
  %s
status:
  conditions: [%s]
`, k.namespace, spec, condition), "create", "-f", "-")
	k.Cleanup(func() { k.run("", "delete", "clusterqueue", k.namespace) })
}

// installKueue defines the kinds of Kueue, with open schemas, for the time of the test.
func installKueue(t *testing.T) {
	t.Helper()
	k := newKubectl(t)
	var docs []string
	for kind, scope := range map[string]string{"Workload": "Namespaced", "LocalQueue": "Namespaced", "ClusterQueue": "Cluster"} {
		plural := strings.ToLower(kind) + "s"
		docs = append(docs, fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.kueue.x-k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, for a test"}}
spec:
  group: kueue.x-k8s.io
  scope: %[2]s
  names: {kind: %[3]s, plural: %[1]s, singular: %[4]s}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, scope, kind, strings.ToLower(kind)))
		t.Cleanup(func() { k.run("", "delete", "crd", plural+".kueue.x-k8s.io") })
	}
	k.okIn(strings.Join(docs, "---\n"), "apply", "-f", "-")
	for _, plural := range []string{"workloads", "localqueues", "clusterqueues"} {
		k.wait("--for=condition=Established", "crd/"+plural+".kueue.x-k8s.io")
	}
}
