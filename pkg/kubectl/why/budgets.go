// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/disruption"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

const (
	// maxBudgets bounds the list of budgets of the namespace, and maxBudgetNotes the notes about them.
	maxBudgets     = 500
	maxBudgetNotes = 3
)

// evictable returns the pods of Jobs that a drain of their node would evict. Pods of LeaderWorkerSets are not among
// them: StatefulSets own those, whose scale a budget can be computed from.
func evictable(pods []*corev1.Pod) (found []*corev1.Pod) {
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner != nil && owner.Kind == "Job" && pod.Spec.NodeName != "" && !snapshot.PodEnded(pod) && pod.DeletionTimestamp == nil {
			found = append(found, pod)
		}
	}
	return found
}

// readBudgets lists the budgets of the namespace, if the object has pods for which they may be impossible to compute.
func (l *loader) readBudgets(ctx context.Context) {
	if len(evictable(l.e.Pods)) == 0 {
		return
	}
	list, err := l.Kube.PolicyV1().PodDisruptionBudgets(l.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0", Limit: maxBudgets})
	if err != nil {
		l.gap("poddisruptionbudgets", err)
		return
	}
	l.e.Budgets = list.Items
}

// drainsBlocked names the budgets that allow no disruption of pods of the object because they cannot be computed.
func drainsBlocked(e *Evidence) (notes []string) {
	pods := evictable(e.Pods)
	more := 0
	for i := range e.Budgets {
		b := &e.Budgets[i]
		reason, selector, selected := disruption.Uncomputable(b), disruption.Selector(b), 0
		for _, pod := range pods {
			if selector.Matches(labels.Set(pod.Labels)) {
				selected++
			}
		}
		switch {
		case reason == "" || selected == 0:
			continue
		case len(notes) == maxBudgetNotes:
			more++
			continue
		}
		note := fmt.Sprintf("PodDisruptionBudget %s selects %s of the %s and allows no disruption, so that drains of their nodes do not end: %s",
			b.Name, count(selected, "pod"), e.kind().noun, oneLine(reason))
		if disruption.NeedsScale(b) {
			note += ". maxUnavailable and percentages need the scale of the owners of the pods, and Jobs have none: use minAvailable with a " +
				"number, or no budget"
		}
		notes = append(notes, note)
	}
	if more > 0 {
		notes = append(notes, fmt.Sprintf("the same holds of %s of the namespace", count(more, "other PodDisruptionBudget")))
	}
	return notes
}
