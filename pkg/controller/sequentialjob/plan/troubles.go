// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// reportTroubles reports what keeps the current child from running although it was created, or when that is due. status is the status that
// other subjects have changed.
func reportTroubles(q *sequence, status *batchv1alpha1.SequentialJobStatus) wants {
	if q.current == nil || q.current.Deleting {
		return wants{}
	}
	return troublesOf(q, *q.current, status)
}

func troublesOf(q *sequence, c Child, status *batchv1alpha1.SequentialJobStatus) wants {
	index, waits := currentIndex(status), q.Unschedulable
	if c.Queued && !q.queue.Served {
		return wants{conditions: []condition{unavailable(batchv1alpha1.ReasonQueueUnavailable,
			fmt.Sprintf("Job %d waits for quota, but the cluster does not serve the API of Kueue: "+
				"install Kueue, or remove the label %s from the SequentialJob and from %s %s", index, helper.QueueKey,
				strings.ToLower(string(c.Kind)), c.Name))}}
	}
	if q.queue.Hold != nil && !q.queue.Served && c.Suspended {
		return wants{} // waitForQuota says so
	}
	switch refused, due := refusedPods(q, c, status); {
	case refused != nil:
		return wants{requeueAfter: hostplan.PodsRefusedAgain, conditions: []condition{unavailable(
			cmp.Or(refused.Reason, batchv1alpha1.ReasonPodsRefused), refusedHead(c, index)+refused.Message)}}
	case due > 0:
		return wants{requeueAfter: due}
	}
	known := isTrue(status, batchv1alpha1.ConditionResourcesUnavailable, batchv1alpha1.ReasonUnschedulable)
	switch wait := hostplan.StepUnschedulableAfter - q.Now.Sub(waits.Since); {
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

// refusedPods returns what the API refuses to the current child; nil if it refuses nothing. The second value is when that may be worth
// reporting.
func refusedPods(q *sequence, c Child, status *batchv1alpha1.SequentialJobStatus) (*hostplan.Refusal, time.Duration) {
	if c.Refused == nil || c.Kind == batchv1alpha1.StepKindJobSet {
		return c.Refused, 0 // the controller of the JobSet has waited
	}
	if reports, due := hostplan.ReportsRefused(reportsRefused(status), q.PodsRefusedSince, c.Refused.At, q.Now.Time); !reports {
		return nil, due
	}
	return c.Refused, 0
}

// The beginnings of messages about what the API refuses to a child that exists.
const podsOfJob, jobDoesNotRun = "pods of job ", "job "

// refusedHead returns how the message begins. What a JobSet says has a subject of its own.
func refusedHead(c Child, index int) string {
	if c.Kind == batchv1alpha1.StepKindJobSet {
		return fmt.Sprintf("%s%d: ", jobDoesNotRun, index)
	}
	return fmt.Sprintf("%s%d cannot be created: ", podsOfJob, index)
}

// reportsRefused returns whether the status says that the API refuses something to a child that exists. The reasons are the same if it
// refuses the child.
func reportsRefused(status *batchv1alpha1.SequentialJobStatus) bool {
	c := meta.FindStatusCondition(status.Conditions, batchv1alpha1.ConditionResourcesUnavailable)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason != batchv1alpha1.ReasonUnschedulable &&
		(strings.HasPrefix(c.Message, podsOfJob) || strings.HasPrefix(c.Message, jobDoesNotRun))
}
