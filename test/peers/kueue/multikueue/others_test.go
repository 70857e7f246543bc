// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package multikueue

import (
	"fmt"
	"strings"
	"testing"
)

// Kueue creates a LeaderWorkerSet at the worker, and copies no status: its pods at the manager stay gated.
func TestLeaderWorkerSetRunsAtTheWorker(t *testing.T) {
	s := begin(t, 4)
	s.manager.OKIn(`apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: llm, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}
      spec: {containers: [{name: main, image: busybox, resources: {requests: {cpu: 100m}}}]}
`, "create", "-f", "-")
	s.worker.Awaits("leaderworkerset/llm", "{.status.readyReplicas}", "1")
	s.says("why lws/llm", "Kueue runs group 0 in the cluster east", "why lws/llm # in the cluster east")
	if got := s.manager.Field("leaderworkerset/llm", "{.status.readyReplicas}"); got != "" && got != "0" {
		t.Errorf("%s groups are ready at the manager", got)
	}
	s.manager.OK("delete", "leaderworkerset", "llm")
	s.gone("leaderworkerset/llm")
}

const sequence = `apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
metadata: {name: etl, labels: {kueue.x-k8s.io/queue-name: team}}
spec:%s
  containers:
  - {name: extract, image: busybox, resources: {requests: {cpu: '1'}}}
  - {name: load, image: busybox, resources: {requests: {cpu: '1'}}}
`

// Each step of a sequence is admitted, and runs at a worker; the sequence stays at the manager.
func TestStepsRunAtTheWorker(t *testing.T) {
	s := begin(t, 4)
	s.manager.OKIn(fmt.Sprintf(sequence, ""), "create", "-f", "-")
	s.says("why sqj/etl", "Kueue runs the job etl-0 in the cluster east")
	s.manager.Awaits("sequentialjob/etl", "{.status.phase}", "Completed")
	if got := s.manager.OK("get", "pods", "-o", "name") + s.worker.OK("get", "sequentialjobs", "-o", "name"); got != "" {
		t.Errorf("exist besides: %s", got)
	}
	if got := s.manager.Field("jobs", "{.items[*].spec.managedBy}"); strings.Count(got, "kueue.x-k8s.io/multikueue") != 2 {
		t.Errorf("the steps are managed by %q", got)
	}
}

// rights are what Kueue needs at the manager for an external framework.
const rights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kueue-sequentialjobs}
rules:
- {apiGroups: [batch.jobset-apiserver.io], resources: [sequentialjobs], verbs: [get, list, watch]}
- {apiGroups: [batch.jobset-apiserver.io], resources: [sequentialjobs/status], verbs: [get, patch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kueue-sequentialjobs}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kueue-sequentialjobs}
subjects: [{kind: ServiceAccount, name: kueue-controller-manager, namespace: kueue-system}]
`

// A sequence that names MultiKueue in spec.managedBy runs as a whole at the worker, and its status is copied, once a
// Workload exists for it.
func TestSequenceIsAnExternalFramework(t *testing.T) {
	s := begin(t, 4)
	s.manager.OKIn(rights, "apply", "-f", "-")
	s.manager.OKIn(fmt.Sprintf(sequence, "\n  managedBy: kueue.x-k8s.io/multikueue"), "create", "-f", "-")
	s.says("why sqj/etl", "in another cluster once a Workload exists for it, and there is none")
	uid := s.manager.Field("sequentialjob/etl", "{.metadata.uid}")
	s.manager.OKIn(fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  name: sequentialjob-etl
  labels: {kueue.x-k8s.io/job-uid: %[1]s}
  ownerReferences: [{apiVersion: batch.jobset-apiserver.io/v1alpha1, kind: SequentialJob, name: etl, uid: %[1]s, controller: true}]
spec:
  queueName: team
  podSets: [{name: main, count: 1, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: '1'}}}]}}}]
`, uid), "create", "-f", "-")
	s.manager.Awaits("sequentialjob/etl", "{.status.phase} {.status.steps[*].state}", "Completed Succeeded Succeeded")
	remote := s.worker.Field("sequentialjob/etl", "{.status}")
	if got := s.manager.Field("sequentialjob/etl", "{.status}"); got != remote {
		t.Errorf("the status at the manager is\n%s\nand at the worker\n%s", got, remote)
	}
	s.manager.OK("delete", "sequentialjob", "etl")
	s.gone("sequentialjob/etl")
}
