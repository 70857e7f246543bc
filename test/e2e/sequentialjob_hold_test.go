// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// flavors are two kinds of nodes, and a class of priority.
const flavors = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: linux}
spec: {nodeLabels: {kubernetes.io/os: linux}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: amd}
spec:
  nodeLabels: {kubernetes.io/arch: amd64}
  tolerations: [{key: spot, operator: Exists}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 100
`

// TestSequenceHoldsQuota runs a sequence with one Workload for all of its steps: two steps with one reservation, an eviction while the
// third one runs, an admission to other nodes, and the end.
func TestSequenceHoldsQuota(t *testing.T) {
	tier.OnRequest(t, "needs features that are off by default")
	t.Parallel() // the shared cluster does not run it
	k := newKubectlFor(t, gated.use(t))
	s := withKueue(k)
	s.Hold("insufficient quota")
	k.okIn(flavors, "create", "-f", "-")
	k.sequence(fmt.Sprintf(inTeam, "etl"), steered)

	k.shows("etl", batchv1alpha1.ConditionProgressing, "False", batchv1alpha1.ReasonWaitingForQuota, "in queue team", "insufficient quota")
	k.inPhase("etl", batchv1alpha1.PhaseWaiting)
	w := "workload/" + k.workloadOf("sequentialjob/etl")
	if got, want := k.field(w, "{.spec.queueName} {.spec.priority} {.spec.priorityClassRef.name} {.spec.maximumExecutionTimeSeconds} {.spec.podSets[*].name} {.spec.podSets[0].count} {.metadata.finalizers[0]}"),
		"team 100 high 600 main 1 kueue.x-k8s.io/resource-in-use"; got != want {
		t.Errorf("Workload: %s, want %s", got, want)
	}
	if got := k.run("", "get", "jobs", "-o", "name").stdout; got != "" {
		t.Errorf("children without quota: %s", got)
	}

	s.Admit("linux")
	k.endStep("etl", 0, "success")
	k.endStep("etl", 1, "success")
	if got := k.ok("get", "workloads", "-o", "name"); strings.Count(got, "\n") != 1 {
		t.Errorf("Workloads: %s", got)
	}
	template := "{.spec.template.spec.nodeSelector} {.spec.template.metadata.labels.kueue\\.x-k8s\\.io/podset} {.metadata.labels.kueue\\.x-k8s\\.io/queue-name}"
	if got, want := k.field("job/etl-1", template), `{"kubernetes.io/os":"linux"} main `; got != want {
		t.Errorf("second Job: %s, want %s", got, want)
	}
	k.eventually(func() string {
		return k.hasNot(w, `{.status.conditions[?(@.type=="PodsReady")].status}`, "True")
	})

	// The third step is evicted: it stops, the quota is given back, and finished steps stay finished.
	k.suspended("etl-2", false)
	s.Evict(strings.TrimPrefix(w, "workload/"), "Preempted")
	k.suspended("etl-2", true)
	k.shows("etl", batchv1alpha1.ConditionProgressing, "False", batchv1alpha1.ReasonWaitingForQuota, "Job 2 waits for quota in queue team", "no room")
	k.eventually(func() string {
		return k.hasNot(w, `{.status.admission}{.status.conditions[?(@.type=="Admitted")].reason} {.status.conditions[?(@.type=="Requeued")].status}`, "NoReservation True")
	})

	// On the same nodes it goes on; on others it begins again.
	s.Admit("linux")
	k.suspended("etl-2", false)
	if got := k.sequenceNamed("etl").Status.Steps[2].Attempts; got != 1 {
		t.Errorf("the third step has %d attempts", got)
	}
	s.Evict(strings.TrimPrefix(w, "workload/"), "Preempted")
	k.shows("etl", batchv1alpha1.ConditionProgressing, "False", batchv1alpha1.ReasonWaitingForQuota, "no room")
	s.Admit("amd")
	k.eventually(func() string {
		return k.hasNot("sequentialjob/etl", "{.status.steps[2].attempts} {.status.steps[2].state}", "2 Running")
	})
	if got, want := k.field("job/etl-2", "{.spec.template.spec.nodeSelector}"), `{"kubernetes.io/arch":"amd64"}`; got != want {
		t.Errorf("third Job: %s, want %s", got, want)
	}

	// A suspended sequence gives its quota back, and gets it again.
	k.ok("patch", "sequentialjob", "etl", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	k.eventually(func() string { return k.hasNot(w, `{.spec.active}{.status.admission}`, "false") })
	k.ok("patch", "sequentialjob", "etl", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	k.suspended("etl-2", false)

	// Another step, which needs more than is reserved: the Workload is replaced, and the third step waits and goes on.
	old := k.field(w, "{.metadata.uid}")
	k.ok("patch", "sequentialjob", "etl", "--type=json", "-p", `[{"op": "add", "path": "/spec/containers/-", "value":
		{"name": "fourth", "image": "busybox", "resources": {"requests": {"cpu": "2"}}}}]`)
	k.eventually(func() string {
		r := k.run("", "get", w, "-o", "jsonpath={.metadata.uid} {.spec.podSets[0].template.spec.containers[0].resources.requests.cpu}")
		if uid, cpu, _ := strings.Cut(r.stdout, " "); uid == old || cpu != "2" {
			return "the Workload is " + r.stdout + r.stderr
		}
		return ""
	})
	k.suspended("etl-2", false)
	k.endStep("etl", 2, "success")
	k.endStep("etl", 3, "success")
	k.inPhase("etl", batchv1alpha1.PhaseCompleted)
	k.eventually(func() string {
		return k.hasNot(w, `{.status.conditions[?(@.type=="Finished")].reason}{.metadata.finalizers}`, "Succeeded")
	})
	k.delete("sequentialjob", "etl")
	k.wait("--for=delete", w)

	// One that is deleted while it runs gives its quota back, too.
	k.sequence(fmt.Sprintf(inTeam, "gone"), steered)
	k.inPhase("gone", batchv1alpha1.PhaseRunning)
	w = "workload/" + k.workloadOf("sequentialjob/gone")
	k.delete("sequentialjob", "gone")
	k.wait("--for=delete", w)
}

// hasNot returns a problem unless a JSONPath of an object has the value. The object may not exist yet.
func (k *kubectl) hasNot(object, path, want string) (problem string) {
	k.Helper()
	if r := k.run("", "get", object, "-o", "jsonpath="+path); r.code != 0 || r.stdout != want {
		return fmt.Sprintf("%s of %s is %q, want %q %s", path, object, r.stdout, want, r.stderr)
	}
	return ""
}
