// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// inQueue makes the set wait in the queue research, with a Workload without quota; changes apply to what Kueue says.
func inQueue(changes ...func(*Kueue)) *Evidence {
	return healthy(without, spec(suspends), set(func(js *jobsetv1alpha2.JobSet) { js.Labels = map[string]string{queueLabel: "research"} }), func(e *Evidence) {
		e.Kueue = Kueue{
			Served: true, WorkloadRead: true, LocalQueueRead: true, ClusterQueueRead: true,
			Workload: kueueObject("Workload", "jobset-train", map[string]any{"active": true},
				kueueCondition("QuotaReserved", "False", "insufficient quota for cpu")),
			LocalQueue:   kueueObject("LocalQueue", "research", map[string]any{"clusterQueue": "shared"}, kueueCondition("Active", "True", "")),
			ClusterQueue: kueueObject("ClusterQueue", "shared", map[string]any{}, kueueCondition("Active", "True", "")),
		}
		for _, change := range changes {
			change(&e.Kueue)
		}
	})
}

func kueueObject(kind, name string, spec map[string]any, conditions ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": map[string]any{"name": name},
		"spec": spec, "status": map[string]any{"conditions": conditions},
	}}
}

func kueueCondition(conditionType, status, message string) any {
	return map[string]any{"type": conditionType, "status": status, "reason": "Test", "message": message, "lastTransitionTime": "2026-11-20T11:00:00Z"}
}

func kueueCases() map[string]diagnosisCase {
	return map[string]diagnosisCase{
		"the queue has no quota": {evidence: inQueue(), want: QuotaNotReserved, words: []string{"research", "insufficient quota for cpu"}},
		"the queue does not exist": {
			evidence: inQueue(func(k *Kueue) { k.LocalQueue, k.ClusterQueue, k.ClusterQueueRead = nil, nil, false }),
			want:     QueueMissing, words: []string{"LocalQueue) research"},
		},
		"the queue leads to one that does not exist": {
			evidence: inQueue(func(k *Kueue) { k.ClusterQueue = nil }),
			want:     QueueMissing, words: []string{"ClusterQueue shared"}, further: []Cause{QuotaNotReserved},
		},
		"Kueue is not installed": {evidence: inQueue(func(k *Kueue) { *k = Kueue{} }), want: QueueMissing, words: []string{"not installed"}},
		"the cluster queue was stopped": {
			evidence: inQueue(func(k *Kueue) {
				k.ClusterQueue = kueueObject("ClusterQueue", "shared", map[string]any{"stopPolicy": "Hold"}, kueueCondition("Active", "False", "stopped"))
			}),
			want: QueueStopped, words: []string{"ClusterQueue shared", "Hold"}, further: []Cause{QuotaNotReserved},
		},
		"the local queue was stopped": {
			evidence: inQueue(func(k *Kueue) {
				k.LocalQueue = kueueObject("LocalQueue", "research", map[string]any{"clusterQueue": "shared", "stopPolicy": "HoldAndDrain"})
			}),
			want: QueueStopped, words: []string{"LocalQueue research", "HoldAndDrain"}, further: []Cause{QuotaNotReserved},
		},
		"the queue is not active": {
			evidence: inQueue(func(k *Kueue) {
				k.ClusterQueue = kueueObject("ClusterQueue", "shared", map[string]any{"stopPolicy": "None"}, kueueCondition("Active", "False", "missing flavor gpu"))
			}),
			want: QueueStopped, words: []string{"not active", "missing flavor gpu"}, further: []Cause{QuotaNotReserved},
		},
		"there is no Workload": {evidence: inQueue(func(k *Kueue) { k.Workload = nil }), want: WorkloadMissing},
		"the Workload was deactivated": {
			evidence: inQueue(func(k *Kueue) { k.Workload.Object["spec"] = map[string]any{"active": false} }), want: WorkloadDeactivated,
		},
		"an admission check is open": {
			evidence: inQueue(func(k *Kueue) {
				k.Workload = kueueObject("Workload", "jobset-train", map[string]any{}, kueueCondition("QuotaReserved", "True", ""))
				k.Workload.Object["status"].(map[string]any)["admissionChecks"] = []any{
					map[string]any{"name": "budget", "state": "Ready"}, map[string]any{"name": "provision", "state": "Pending", "message": "waits"},
				}
			}),
			want: AdmissionCheckPending, words: []string{"admission check provision is not ready"},
		},
		"the queue may not be read": {
			evidence: inQueue(func(k *Kueue) { *k = Kueue{Served: true} }), want: QuotaNotReserved, words: []string{"research", "could not be read"},
		},
	}
}
