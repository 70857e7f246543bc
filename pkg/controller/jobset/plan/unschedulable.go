// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// unschedulableAfter is how long pods may wait for a node before it is reported. Most wait for a moment, while others leave.
const unschedulableAfter = 15 * time.Second

// Unschedulable are the pods of a set for which the scheduler finds no node.
type Unschedulable struct {
	// Pods is their number.
	Pods int
	// Reason is why one of them does not fit, in the words of the scheduler.
	Reason string
	// Since is since when there are any.
	Since time.Time
}

const (
	cannotBeScheduled    = " cannot be scheduled: "
	reasonPodsScheduled  = "PodsScheduled"
	messagePodsScheduled = "no pod waits for a node"
)

// setUnschedulable reports pods that have waited for a node for some time, and returns when that is due. The message stays
// while the number of pods does: the words of the scheduler change with each try.
func (b *statusBuilder) setUnschedulable() (due time.Duration) {
	waits := b.o.Unschedulable
	c := meta.FindStatusCondition(b.next.Conditions, jobsetv1alpha2.PodsUnschedulable)
	known := c != nil && c.Status == metav1.ConditionTrue
	head := hostplan.CountPods(waits.Pods) + cannotBeScheduled
	switch left := unschedulableAfter - b.o.Now.Sub(waits.Since); {
	case waits.Pods == 0:
		b.endUnschedulable(reasonPodsScheduled, messagePodsScheduled)
	case !known && left > 0:
		return left
	case !known || !strings.HasPrefix(c.Message, head):
		events := b.events
		b.set(jobsetv1alpha2.PodsUnschedulable, metav1.ConditionTrue, jobsetv1alpha2.ReasonUnschedulable, head+waits.Reason)
		if known {
			b.events = events // another number is no news
		}
	}
	return 0
}

func (b *statusBuilder) endUnschedulable(reason, message string) {
	b.set(jobsetv1alpha2.PodsUnschedulable, metav1.ConditionFalse, reason, message)
}
