// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Unschedulable are the pods of a set for which the scheduler finds no node.
type Unschedulable = hostplan.Unschedulable

const (
	cannotBeScheduled    = " cannot be scheduled: "
	reasonPodsScheduled  = reasons.PodsScheduled
	messagePodsScheduled = "no pod waits for a node"
)

// unschedulable reports pods that have waited for a node for some time. The message stays while the number of pods does: the
// words of the scheduler change with each try.
func unschedulable(s state) changes {
	waits, c := s.Unschedulable, current(&s.JobSet.Status, jobsetv1alpha2.PodsUnschedulable)
	head := hostplan.CountPods(waits.Pods) + cannotBeScheduled
	switch left := hostplan.JobSetUnschedulableAfter - s.Now.Sub(waits.Since); {
	case waits.Pods == 0:
		return wants(end(jobsetv1alpha2.PodsUnschedulable, reasonPodsScheduled, messagePodsScheduled))
	case c == nil && left > 0:
		return changes{plan: Plan{RequeueAfter: left}}
	case c != nil && strings.HasPrefix(c.Message, head):
		return changes{}
	}
	waiting := begin(jobsetv1alpha2.PodsUnschedulable, jobsetv1alpha2.ReasonUnschedulable, head+waits.Reason)
	waiting.quiet = c != nil // another number is no news
	return wants(waiting)
}
