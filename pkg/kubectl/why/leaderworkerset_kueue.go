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
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Groups of a LeaderWorkerSet in a queue: Kueue makes a Workload for each group, and holds its pods by a scheduling
// gate until that has quota.

const (
	// kueueGate is the scheduling gate of pods whose Workload is not admitted.
	kueueGate = kueueGroup + "/admission"
	// prebuiltLabel of a pod names its Workload, and podGroupLabel the group of pods to which it belongs, which has the
	// name of its Workload, too.
	prebuiltLabel = kueueGroup + "/prebuilt-workload-name"
	podGroupLabel = kueueGroup + "/pod-group-name"
	// groupIndexAnnotation of a Workload is the index of its group.
	groupIndexAnnotation = kueueGroup + "/component-workload-index"
)

func unqueueGroups(d *diagnosis) []string {
	return []string{d.kubectl("label leaderworkerset %s %s-", d.Name, jobsetv1alpha2.QueueNameKey), d.plugin("restart %s", d.ref())}
}

// heldByKueue returns whether a pod waits until its Workload is admitted.
func heldByKueue(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == kueueGate })
}

func groupHeldByKueue(g *snapshot.PodGroup) bool { return slices.ContainsFunc(g.Pods, heldByKueue) }

// queueOfGroups returns the queue of a LeaderWorkerSet: the queue of the set, or else the queue of its pods; "" for none.
func (e *Evidence) queueOfGroups() string {
	if queue := e.Set.Labels[jobsetv1alpha2.QueueNameKey]; queue != "" {
		return queue
	}
	for _, pod := range e.Pods {
		if queue := pod.Labels[jobsetv1alpha2.QueueNameKey]; queue != "" && heldByKueue(pod) {
			return queue
		}
	}
	return ""
}

// explainedByQueue returns whether the pod is held by Kueue, and the queue says why.
func (d *diagnosis) explainedByQueue(pod *corev1.Pod) bool {
	return d.Set != nil && heldByKueue(pod) && d.queueOfGroups() != ""
}

// readKueueOfGroups reads the Workload of the first group that Kueue holds, and the queues. Without such a group only Kueue itself matters.
func (l *loader) readKueueOfGroups(ctx context.Context) {
	queue := l.e.queueOfGroups()
	switch {
	case queue == "":
		return
	case !slices.ContainsFunc(l.e.Groups.Groups, groupHeldByKueue):
		l.askForKueue(ctx)
		return
	}
	version, workloads := l.workloads(ctx)
	if version == "" {
		return
	}
	if l.e.Kueue.WorkloadRead {
		l.e.Kueue.Workload = workloadOfGroups(l.e.Groups, workloads)
	}
	l.readClusters(ctx, version)
	l.readQueues(ctx, version, queue)
}

// workloadOfGroups returns the Workload of the first held group: one that has no quota, or else any.
func workloadOfGroups(groups *snapshot.Groups, workloads []unstructured.Unstructured) (found *unstructured.Unstructured) {
	for _, group := range groups.Groups {
		if !groupHeldByKueue(group) {
			continue
		}
		w := workloadOfGroup(groups.Set.UID, group, workloads)
		if w != nil && !conditionTrue(conditionOf(w, "QuotaReserved")) {
			return w
		}
		if found == nil {
			found = w
		}
	}
	return found
}

// workloadOfGroup finds the Workload that the set owns for the group, that its pods name, or that they own.
func workloadOfGroup(set types.UID, group *snapshot.PodGroup, workloads []unstructured.Unstructured) *unstructured.Unstructured {
	names, owners := map[string]bool{}, map[types.UID]bool{}
	for _, pod := range group.Pods {
		owners[pod.UID] = true
		names[pod.Labels[prebuiltLabel]], names[pod.Labels[podGroupLabel]] = true, true
	}
	for i := range workloads {
		w := &workloads[i]
		index := w.GetAnnotations()[groupIndexAnnotation]
		for _, owner := range w.GetOwnerReferences() {
			if owners[owner.UID] || owner.UID == set && (names[w.GetName()] || index == strconv.Itoa(group.Index)) {
				return w
			}
		}
	}
	return nil
}

// groupOfWorkload returns the index of the group of a Workload; if it is not known, the index of the first held group.
func (d *diagnosis) groupOfWorkload(held []*snapshot.PodGroup) int {
	if w := d.Kueue.Workload; w != nil {
		for _, group := range held {
			if workloadOfGroup(d.Set.UID, group, []unstructured.Unstructured{*w}) != nil {
				return group.Index
			}
		}
	}
	return held[0].Index
}

// groupsQueued says what the groups that Kueue holds wait for.
func groupsQueued(d *diagnosis) []Finding {
	queue := d.queueOfGroups()
	held, names := d.groupsWith(groupHeldByKueue)
	if queue == "" || len(held) == 0 {
		return nil
	}
	verb := " is"
	if len(held) > 1 {
		verb = " are"
	}
	group := fmt.Sprintf("group %d", d.groupOfWorkload(held))
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
		pod := held[0].Pods[slices.IndexFunc(held[0].Pods, heldByKueue)]
		f.Evidence = append(f.Evidence, Fact{Object: object("pod", pod.Name), Text: "has the scheduling gate " + kueueGate,
			Time: at(pod.CreationTimestamp.Time)})
	}
	return findings
}
