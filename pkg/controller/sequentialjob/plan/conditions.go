// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// condition is a condition as a subject wants it.
type condition struct {
	// Type, Status, Reason and Message are fields of the condition.
	Type            string
	Status          metav1.ConditionStatus
	Reason, Message string
	// event is reported when the status of the condition changes; no event if it has no reason.
	event Event
	// byReason means that the event is reported for another reason, too.
	byReason bool
}

// alwaysShown are the conditions that are of interest while they are False, too.
var alwaysShown = []string{batchv1alpha1.ConditionAvailable, batchv1alpha1.ConditionProgressing}

// put puts conditions in place in their order, and returns the events that their changes cause.
func put(status *batchv1alpha1.SequentialJobStatus, now metav1.Time, conditions ...condition) (events []Event) {
	for _, c := range conditions {
		if putOne(status, now, c) {
			events = append(events, c.event)
		}
	}
	return events
}

// putOne puts a condition in place: a False one only where the condition exists, and its time only with its status. It returns whether the
// event of the condition is reported.
func putOne(status *batchv1alpha1.SequentialJobStatus, now metav1.Time, c condition) bool {
	current := meta.FindStatusCondition(status.Conditions, c.Type)
	if current == nil && c.Status == metav1.ConditionFalse && !slices.Contains(alwaysShown, c.Type) {
		return false
	}
	was, sameReason := metav1.ConditionFalse, false
	if current != nil {
		was, sameReason = current.Status, current.Reason == c.Reason
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: now,
	})
	return c.event.Reason != "" && (was != c.Status || c.byReason && !sameReason)
}

// isTrue returns whether a condition is True, for one of the reasons if there are any.
func isTrue(status *batchv1alpha1.SequentialJobStatus, conditionType string, reasons ...string) bool {
	c := meta.FindStatusCondition(status.Conditions, conditionType)
	return c != nil && c.Status == metav1.ConditionTrue && (len(reasons) == 0 || slices.Contains(reasons, c.Reason))
}

// hasReason returns whether a condition has one of the reasons, whatever its status.
func hasReason(status *batchv1alpha1.SequentialJobStatus, conditionType string, reasons ...string) bool {
	c := meta.FindStatusCondition(status.Conditions, conditionType)
	return c != nil && slices.Contains(reasons, c.Reason)
}

func available() condition {
	return condition{Type: batchv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonOperational,
		Message: "the sequence is operational"}
}

func notAvailable(reason, message string) condition {
	return condition{Type: batchv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func progressing(reason, message string) condition {
	status := metav1.ConditionFalse
	if reason == batchv1alpha1.ReasonJobStarted || reason == batchv1alpha1.ReasonJobCompleted {
		status = metav1.ConditionTrue
	}
	return condition{Type: batchv1alpha1.ConditionProgressing, Status: status, Reason: reason, Message: message}
}

func failed(reason, message string) condition {
	return condition{Type: batchv1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func notFailed(reason, message string) condition {
	return condition{Type: batchv1alpha1.ConditionFailed, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// suspended returns the conditions of a suspended sequence; stopped means that no child is active, and still is why one does not stop.
func suspended(stopped bool, still string) []condition {
	const message = "the sequence is suspended"
	if still != "" {
		still = "; " + still
	}
	conditions := []condition{progressing(batchv1alpha1.ReasonSuspended, message+still)}
	if stopped {
		conditions = append(conditions, condition{
			Type: batchv1alpha1.ConditionSuspended, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonSuspended, Message: message,
			event: Event{Type: corev1.EventTypeNormal, Reason: batchv1alpha1.ReasonSuspended, Note: "Suspended the sequence"},
		})
	}
	return conditions
}

func resumed() condition {
	c := notSuspended("the sequence was resumed")
	c.event = Event{Type: corev1.EventTypeNormal, Reason: batchv1alpha1.ReasonResumed, Note: "Resumed the sequence"}
	return c
}

func notSuspended(message string) condition {
	return condition{Type: batchv1alpha1.ConditionSuspended, Status: metav1.ConditionFalse, Reason: batchv1alpha1.ReasonResumed,
		Message: message}
}

func notHeld(message string) condition {
	return condition{Type: batchv1alpha1.ConditionHeld, Status: metav1.ConditionFalse, Reason: batchv1alpha1.ReasonOperational,
		Message: message}
}

func normal(reason, note string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Note: note}
}

func warning(reason, note string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Note: note}
}

func countJobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// maxMessage is the length of the message of a step in bytes.
const maxMessage = 1024

func truncated(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "")
}
