// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// inQueue makes the set wait in the queue research, with a Workload without quota; changes apply to what Kueue says.
func inQueue(changes ...func(*Kueue)) *Evidence {
	return healthy(without, spec(suspends), set(func(js *jobsetv1alpha2.JobSet) {
		js.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "research"}
	}), func(e *Evidence) {
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

const preemptionText = "Preempted to accommodate a workload (UID: uid-big-workload, JobUID: uid-big) due to prioritization in the ClusterQueue; preemptor path: /a; preemptee path: /a"

// bigger is the Workload for which others had to make room.
func bigger(namespace string) *unstructured.Unstructured {
	w := kueueObject("Workload", "jobset-big-1a2b3", map[string]any{})
	w.SetNamespace(namespace)
	w.SetUID("uid-big-workload")
	w.SetLabels(map[string]string{jobUIDLabel: "uid-big"})
	w.SetOwnerReferences([]metav1.OwnerReference{{Kind: "JobSet", Name: "big", UID: "uid-big", Controller: ptr.To(true)}})
	return w
}

func preemptedFor(preemptor *unstructured.Unstructured, waits string) func(*Kueue) {
	return func(k *Kueue) {
		evicted := kueueCondition("Evicted", "True", preemptionText)
		evicted.(map[string]any)["reason"] = "Preempted"
		k.Workload = kueueObject("Workload", "jobset-train", map[string]any{}, kueueCondition("QuotaReserved", "False", waits), evicted)
		k.Preemptor = preemptor
	}
}

func kueueCases() map[string]diagnosisCase {
	return map[string]diagnosisCase{
		"the queue has no quota": {evidence: inQueue(), want: QuotaNotReserved, words: []string{"research", "insufficient quota for cpu"}},
		"others wait in the same queue": {
			evidence: inQueue(func(k *Kueue) {
				k.Workload = waitingWorkload("jobset-train", "research", 5, 1, kueueCondition("QuotaReserved", "False", "insufficient quota for cpu"))
				k.Waiting = []unstructured.Unstructured{*k.Workload, *waitingWorkload("jobset-older", "research", 5, 2), *waitingWorkload("jobset-lower", "research", 0, 3)}
			}), want: QuotaNotReserved, words: []string{"insufficient quota for cpu; it has place 2 of 3 in the queue"},
		},
		"the set was preempted, and its queue has tried again": {
			evidence: inQueue(preemptedFor(bigger("team"), "insufficient quota for cpu")), want: WorkloadPreempted,
			words: []string{"preempted 60m ago by the JobSet big (prioritization in the ClusterQueue); ", "the queue research has no quota for the set: insufficient quota for cpu"},
		},
		"the set was preempted a moment ago": {
			evidence: inQueue(preemptedFor(bigger("other"), preemptionText)), want: WorkloadPreempted,
			words: []string{"by the JobSet big of the namespace other (", "; the queue research has no quota for the set yet"},
		},
		"the set was preempted by an unknown workload": {
			evidence: inQueue(preemptedFor(nil, preemptionText)), want: WorkloadPreempted, words: []string{"by another workload, which is gone or may not be read ("},
		},
		"the pods were not ready in time": {
			evidence: inQueue(func(k *Kueue) {
				evicted := kueueCondition("Evicted", "True", "Exceeded the PodsReady timeout team/jobset-train").(map[string]any)
				evicted["reason"] = "PodsReadyTimeout"
				k.Workload = kueueObject("Workload", "jobset-train", map[string]any{}, kueueCondition("QuotaReserved", "False", "Exceeded the PodsReady timeout team/jobset-train"), evicted)
			}), want: PodsNotReadyInTime,
			words: []string{"Kueue took the quota back 60m ago, because the pods were not ready in time (waitForPodsReady): Exceeded the PodsReady timeout team/jobset-train; the queue research has no quota for the set yet"},
		},
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
