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

// reportTroubles reports what keeps the current child from running although it was created, or when that is due. status is the status that
// other subjects have changed.
func reportTroubles(o Observed, c Child, status *batchv1alpha1.SequentialJobStatus) wants {
	index, waits := currentIndex(status), o.Unschedulable
	if c.Queued && !o.Queue.Served {
		return wants{conditions: []condition{unavailable(batchv1alpha1.ReasonQueueUnavailable,
			fmt.Sprintf("Job %d waits for quota, but the cluster does not serve the API of Kueue: "+
				"install Kueue, or remove the label %s from the SequentialJob and from %s %s", index, helper.QueueKey,
				strings.ToLower(string(c.Kind)), c.Name))}}
	}
	if o.Queue.Hold != nil && !o.Queue.Served && c.Suspended {
		return wants{} // waitForQuota says so
	}
	switch message, due := refusedPods(o, c, status); {
	case message != "":
		return wants{requeueAfter: hostplan.PodsRefusedAgain, conditions: []condition{unavailable(batchv1alpha1.ReasonPodsRefused,
			fmt.Sprintf("pods of job %d cannot be created: %s", index, message))}}
	case due > 0:
		return wants{requeueAfter: due}
	}
	known := isTrue(status, batchv1alpha1.ConditionResourcesUnavailable, batchv1alpha1.ReasonUnschedulable)
	switch wait := hostplan.StepUnschedulableAfter - o.Now.Sub(waits.Since); {
	case waits.Pods == 0:
		return wants{conditions: []condition{notUnavailable()}}
	case known:
		return wants{}
	case wait > 0:
		return wants{requeueAfter: wait}
	}
	return wants{conditions: []condition{unavailable(batchv1alpha1.ReasonUnschedulable, fmt.Sprintf("%s of job %d cannot be scheduled: %s",
		hostplan.CountPods(waits.Pods), index, waits.Reason))}}
}

// refusedPods returns why the API refuses pods of the current child; empty if it does not. The second value is when
// that may be worth reporting.
func refusedPods(o Observed, c Child, status *batchv1alpha1.SequentialJobStatus) (message string, due time.Duration) {
	if c.RefusedPods != "" {
		return c.RefusedPods, 0 // its own controller has waited
	}
	refused, known := o.RefusedPods, isTrue(status, batchv1alpha1.ConditionResourcesUnavailable, batchv1alpha1.ReasonPodsRefused)
	if refused.Message == "" || !c.LacksPods {
		return "", 0
	}
	if reports, due := hostplan.ReportsRefused(known, refused.Since, refused.At, o.Now.Time); !reports {
		return "", due
	}
	return refused.Message, 0
}
