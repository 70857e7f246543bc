// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// unavailable is the trouble of a step for which the cluster lacks resources.
func unavailable(reason, message string) hostplan.Trouble {
	return hostplan.Trouble{Type: batchv1alpha1.ConditionResourcesUnavailable, Reason: reason, Message: message, ByReason: true}
}

// notUnavailable ends that trouble.
func notUnavailable() hostplan.Trouble {
	return hostplan.Trouble{Type: batchv1alpha1.ConditionResourcesUnavailable, Over: true, Reason: batchv1alpha1.ReasonResourcesAvailable,
		Message: "the current job has what it needs"}
}

// endTroubles ends the troubles of a step that has ended, whatever it lacked.
func endTroubles(next *batchv1alpha1.SequentialJobStatus, now metav1.Time) {
	report(next, now, notUnavailable())
	put(next, now, notHeld("the current job has ended"))
}

// reportTroubles reports what keeps the current child from running although it was created. The status is the one that other subjects have
// changed.
func reportTroubles(q *sequence, status *batchv1alpha1.SequentialJobStatus) wants {
	c := q.current
	switch {
	case c == nil || c.Deleting:
		return wants{}
	case c.Queued && !q.queue.Served:
		return wants{troubles: []hostplan.Trouble{unavailable(batchv1alpha1.ReasonQueueUnavailable,
			fmt.Sprintf("Job %d waits for quota, but the cluster does not serve the API of Kueue: "+
				"install Kueue, or remove the label %s from the SequentialJob and from %s %s", currentIndex(status), helper.QueueKey,
				strings.ToLower(string(c.Kind)), c.Name))}}
	case q.queue.Hold != nil && !q.queue.Served && c.Suspended:
		return wants{} // waitForQuota says so
	}
	if t := refusedPods(q, c, status); t.Type != "" && !t.Doubtful {
		return wants{troubles: []hostplan.Trouble{t}}
	}
	return wants{troubles: []hostplan.Trouble{unscheduledPods(q, currentIndex(status))}}
}

// unscheduledPods is the trouble of pods that wait for a node, or says that nothing is lacking.
func unscheduledPods(q *sequence, index int) hostplan.Trouble {
	if q.Unschedulable.Pods == 0 {
		return notUnavailable()
	}
	t := q.Unschedulable.Trouble(batchv1alpha1.ConditionResourcesUnavailable, fmt.Sprintf("of job %d", index), hostplan.StepUnschedulableAfter)
	t.ByReason = true
	return t
}

// refusedPods is the trouble of what the API refuses to the controller of the child; zero if it refuses nothing.
func refusedPods(q *sequence, c *Child, status *batchv1alpha1.SequentialJobStatus) (t hostplan.Trouble) {
	if c.Refused == nil {
		return t
	}
	head, reason := refusedHead(c, currentIndex(status)), cmp.Or(c.Refused.Reason, batchv1alpha1.ReasonPodsRefused)
	if c.Kind == batchv1alpha1.StepKindJobSet {
		t = unavailable(reason, head+c.Refused.Message) // the controller of the JobSet has waited
		t.Again = hostplan.PodsRefusedAgain
		return t
	}
	t = c.Refused.PodsTrouble(batchv1alpha1.ConditionResourcesUnavailable, head, q.PodsRefusedSince, q.Now.Time)
	t.Reason = reason
	if t.ByReason = true; reportsRefused(status) { // for another reason, perhaps
		t.After, t.Doubtful = 0, false
	}
	return t
}

// The beginnings of messages about what the API refuses to a child that exists.
const podsOfJob, jobDoesNotRun = "pods of job ", "job "

// refusedHead returns how the message begins. What a JobSet says has a subject of its own.
func refusedHead(c *Child, index int) string {
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
