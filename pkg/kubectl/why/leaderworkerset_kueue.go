// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Groups of a LeaderWorkerSet in a queue: Kueue makes a Workload for each replica, and holds its pods by a scheduling
// gate until that has quota.

const (
	// kueueGate is the scheduling gate of pods whose Workload is not admitted.
	kueueGate = kueueGroup + "/admission"
	// prebuiltLabel of a pod names its Workload, and podGroupLabel the replica of pods to which it belongs, which has the
	// name of its Workload, too.
	prebuiltLabel = kueueGroup + "/prebuilt-workload-name"
	podGroupLabel = kueueGroup + "/pod-group-name"
	// groupIndexAnnotation of a Workload is the index of its replica.
	groupIndexAnnotation = kueueGroup + "/component-workload-index"
)

func unqueueLeaderWorkerSet(d *diagnosis) []string {
	return []string{d.kubectl("label leaderworkerset %s %s-", d.Name, jobsetv1alpha2.QueueNameKey), d.plugin("restart %s", d.ref())}
}

// podWaitsForQuota returns whether a pod waits until its Workload is admitted.
func podWaitsForQuota(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == kueueGate })
}

func replicaWaitsForQuota(g *snapshot.Replica) bool {
	return slices.ContainsFunc(g.Pods, podWaitsForQuota)
}

// queueOfLeaderWorkerSet returns the queue of a LeaderWorkerSet: the queue of the set, or else the queue of its pods; "" for none.
func (e *Evidence) queueOfLeaderWorkerSet() string {
	if queue := e.Set.Labels[jobsetv1alpha2.QueueNameKey]; queue != "" {
		return queue
	}
	for _, pod := range e.Pods {
		if queue := pod.Labels[jobsetv1alpha2.QueueNameKey]; queue != "" && podWaitsForQuota(pod) {
			return queue
		}
	}
	return ""
}

// explainedByQueue returns whether the pod is held by Kueue, and the queue says why.
func (d *diagnosis) explainedByQueue(pod *corev1.Pod) bool {
	return d.Set != nil && podWaitsForQuota(pod) && d.queueOfLeaderWorkerSet() != ""
}

// readKueueOfLeaderWorkerSet reads the Workload of the first replica that Kueue holds, and the queues. Without such a replica only Kueue
// itself matters.
func (l *loader) readKueueOfLeaderWorkerSet(ctx context.Context) {
	queue := l.e.queueOfLeaderWorkerSet()
	switch {
	case queue == "":
		return
	case !slices.ContainsFunc(l.e.Replicas.Replicas, replicaWaitsForQuota):
		l.askForKueue(ctx)
		return
	}
	version, workloads := l.workloads(ctx)
	if version == "" {
		return
	}
	if l.e.Kueue.WorkloadRead {
		l.e.Kueue.Workload = workloadsOfReplicas(l.e.Replicas, workloads)
	}
	l.readClusters(ctx, version)
	l.readQueues(ctx, version, queue)
}

// workloadsOfReplicas returns the Workload of the first held replica: one that has no quota, or else any.
func workloadsOfReplicas(replicas *snapshot.LeaderWorkerSet, workloads []unstructured.Unstructured) (found *unstructured.Unstructured) {
	for _, replica := range replicas.Replicas {
		if !replicaWaitsForQuota(replica) {
			continue
		}
		w := workloadOfReplica(replicas.Set.UID, replica, workloads)
		if w != nil && !conditionTrue(conditionOf(w, kueueplan.ConditionQuotaReserved)) {
			return w
		}
		if found == nil {
			found = w
		}
	}
	return found
}

// workloadOfReplica finds the Workload that the set owns for the replica, that its pods name, or that they own.
func workloadOfReplica(set types.UID, replica *snapshot.Replica, workloads []unstructured.Unstructured) *unstructured.Unstructured {
	names, owners := map[string]bool{}, map[types.UID]bool{}
	for _, pod := range replica.Pods {
		owners[pod.UID] = true
		names[pod.Labels[prebuiltLabel]], names[pod.Labels[podGroupLabel]] = true, true
	}
	for i := range workloads {
		w := &workloads[i]
		index := w.GetAnnotations()[groupIndexAnnotation]
		for _, owner := range w.GetOwnerReferences() {
			if owners[owner.UID] || owner.UID == set && (names[w.GetName()] || index == strconv.Itoa(replica.Index)) {
				return w
			}
		}
	}
	return nil
}

// replicaOfWorkload returns the index of the replica of a Workload; if it is not known, the index of the first held replica.
func (d *diagnosis) replicaOfWorkload(held []*snapshot.Replica) int {
	if w := d.Kueue.Workload; w != nil {
		for _, replica := range held {
			if workloadOfReplica(d.Set.UID, replica, []unstructured.Unstructured{*w}) != nil {
				return replica.Index
			}
		}
	}
	return held[0].Index
}

// leaderWorkerSetQueued says what the replicas that Kueue holds wait for.
func leaderWorkerSetQueued(d *diagnosis) []Finding {
	queue := d.queueOfLeaderWorkerSet()
	held, names := d.replicasWith(replicaWaitsForQuota)
	if queue == "" || len(held) == 0 {
		return nil
	}
	verb := " is"
	if len(held) > 1 {
		verb = " are"
	}
	group := fmt.Sprintf("group %d", d.replicaOfWorkload(held))
	words := strings.NewReplacer("suspended by Kueue", names+verb+" held by Kueue", "the "+d.noun(), group)
	findings := waitsInQueue(d, queue)
	for i := range findings {
		f := &findings[i]
		if f.Summary = words.Replace(f.Summary); !strings.Contains(f.Summary, "held by Kueue") && f.Cause != ManagedByOther {
			f.Summary = names + ": " + f.Summary
		}
		for n := range f.Evidence {
			switch fact := &f.Evidence[n]; {
			case strings.HasPrefix(fact.Text, "suspended, and the label "):
				fact.Text = strings.TrimPrefix(fact.Text, "suspended, and ")
			case f.Cause == WorkloadMissing:
				fact.Text = "none belongs to " + group
			}
		}
		pod := held[0].Pods[slices.IndexFunc(held[0].Pods, podWaitsForQuota)]
		f.Evidence = append(f.Evidence, Fact{Object: object("pod", pod.Name), Text: "has the scheduling gate " + kueueGate,
			Time: at(pod.CreationTimestamp.Time)})
	}
	return findings
}
