// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// unschedulableAfter is how long pods may wait for a node before it is reported. Most wait for a moment, while others leave.
const unschedulableAfter = 30 * time.Second

// setUnschedulable reports what keeps the current child from running although it was created, and returns when that is due.
func (b *statusBuilder) setUnschedulable(c Child) (due time.Duration) {
	waits, known := b.o.Unschedulable, b.hasReason(batchv1alpha1.ConditionResourcesUnavailable, batchv1alpha1.ReasonUnschedulable)
	if c.Queued && !b.o.Queue.Served {
		b.setUnavailable(batchv1alpha1.ReasonQueueUnavailable,
			fmt.Sprintf("Job %d waits for quota, but the cluster does not serve the API of Kueue: "+
				"install Kueue, or remove the label %s from the SequentialJob and from %s %s", b.index(), helper.QueueKey,
				strings.ToLower(string(c.Kind)), c.Name))
		return 0
	}
	if message, wait := b.refusedPods(c); message != "" || wait > 0 {
		if message == "" {
			return wait
		}
		b.setUnavailable(batchv1alpha1.ReasonPodsRefused, fmt.Sprintf("pods of job %d cannot be created: %s", b.index(), message))
		return hostplan.PodsRefusedAgain
	}
	switch wait := unschedulableAfter - b.o.Now.Sub(waits.Since); {
	case waits.Pods == 0:
		if b.is(batchv1alpha1.ConditionResourcesUnavailable) {
			b.endUnavailable()
		}
	case known && b.is(batchv1alpha1.ConditionResourcesUnavailable):
	case wait > 0:
		return wait
	default:
		b.setUnavailable(batchv1alpha1.ReasonUnschedulable, fmt.Sprintf("%s of job %d cannot be scheduled: %s",
			hostplan.CountPods(waits.Pods), b.index(), waits.Reason))
	}
	return 0
}
