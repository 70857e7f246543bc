// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// kueueGate is the scheduling gate of pods whose Workload is not admitted.
const kueueGate = kueueplan.Group + "/admission"

// heldByKueue returns whether a pod waits until Kueue has quota for it.
func heldByKueue(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == kueueGate })
}

// RunsDespiteQueue returns whether the set names a queue and no pod of it waits for quota. In a cluster without Kueue,
// such a set runs without quota. Pods that Kueue held before it was removed still wait.
func RunsDespiteQueue(o Observed) bool {
	held := func(p Pod) bool { return p.HeldByKueue }
	return o.Set.Labels[jobsetv1alpha2.QueueNameKey] != "" && o.Set.DeletionTimestamp == nil && !slices.ContainsFunc(o.Leaders, held) &&
		!slices.ContainsFunc(o.Workers, func(w Workers) bool { return slices.ContainsFunc(w.Pods, held) })
}

// queueIgnored is the event about a queue that no queueing system reads.
func queueIgnored(queue string) Event {
	return Event{
		Type: corev1.EventTypeWarning, Reason: reasonQueueIgnored, Action: ActionCreate,
		Note: fmt.Sprintf("the label %s names the queue %s, but the cluster does not serve %s: Kueue is not installed, so that the set runs "+
			"without quota",
			jobsetv1alpha2.QueueNameKey, queue, kueueplan.Group),
	}
}
