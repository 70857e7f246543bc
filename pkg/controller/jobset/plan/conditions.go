// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// This file has how conditions change.

// condition is a condition that a subject wants.
type condition struct {
	of, reason, message string
	status              metav1.ConditionStatus
	// quiet means that no event reports the change.
	quiet bool
}

// begin returns a condition that is True, and end one that is False.
func begin(of, reason, message string) condition {
	return condition{of: of, reason: reason, message: message, status: metav1.ConditionTrue}
}

func end(of, reason, message string) condition {
	return condition{of: of, reason: reason, message: message, status: metav1.ConditionFalse}
}

// quietly returns a condition whose change no event reports.
func quietly(c condition) condition {
	c.quiet = true
	return c
}

// current returns the condition of the type while it is True; nil otherwise.
func current(status *jobsetv1alpha2.JobSetStatus, of string) *metav1.Condition {
	if c := meta.FindStatusCondition(status.Conditions, of); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// put puts a condition in place: a False one only where the condition exists, and its time only with its status. It returns the event
// that reports a change; nil if none does.
func put(status *jobsetv1alpha2.JobSetStatus, wanted condition, now metav1.Time) *Event {
	stored := meta.FindStatusCondition(status.Conditions, wanted.of)
	if stored == nil && wanted.status == metav1.ConditionFalse {
		return nil
	}
	next := metav1.Condition{
		Type: wanted.of, Status: wanted.status, Reason: wanted.reason, Message: wanted.message, LastTransitionTime: now,
	}
	if stored != nil {
		next.ObservedGeneration = stored.ObservedGeneration // result sets those of all conditions
	}
	if !meta.SetStatusCondition(&status.Conditions, next) || wanted.quiet {
		return nil
	}
	return &Event{Type: eventType(next), Reason: wanted.reason, Note: wanted.message}
}

// eventType returns the type of the event about a condition. It is worth a warning that a set fails or restarts.
func eventType(c metav1.Condition) string {
	if c.Status == metav1.ConditionTrue && (c.Type == jobsetv1alpha2.JobSetFailed || c.Type == jobsetv1alpha2.JobSetRestarting) {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// over returns a trouble that has ended.
func over(of, reason, message string) hostplan.Trouble {
	return hostplan.Trouble{Type: of, Over: true, Reason: reason, Message: message}
}

// troublesOver ends what a set has waited for, because it has finished.
func troublesOver(reason, message string) []hostplan.Trouble {
	return []hostplan.Trouble{
		namesFree(), over(jobsetv1alpha2.JobCreationFailure, reason, message), over(jobsetv1alpha2.PodCreationFailure, reason, message),
		over(jobsetv1alpha2.PodsUnschedulable, reason, message), over(jobsetv1alpha2.Held, reason, message),
		over(jobsetv1alpha2.PlacementPending, reason, message),
		{Type: jobsetv1alpha2.ServiceEndpointsByCluster, Over: true, Reason: reason, Message: message, Quiet: true},
	}
}

// finishedCondition returns the condition that ended the set; nil while it runs.
func finishedCondition(status *jobsetv1alpha2.JobSetStatus) *metav1.Condition {
	if c := current(status, jobsetv1alpha2.JobSetCompleted); c != nil {
		return c
	}
	return current(status, jobsetv1alpha2.JobSetFailed)
}
