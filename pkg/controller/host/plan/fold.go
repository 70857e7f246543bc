// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trouble is what keeps an object from what its spec asks for, in the words of one of its conditions.
type Trouble struct {
	// Type is the type of the condition.
	Type string
	// Over means that the trouble has ended: the condition becomes False if it is True, with this reason and message.
	Over bool
	// Reason is the reason of the condition.
	Reason string
	// Message is the message of the condition. It begins with Head. A message with this head and for this reason stays as it is, since the
	// rest of it may differ with each try. Without a head, the message is always the latest one.
	Message, Head string
	// Since is since when the trouble lasts, and After is how long it must last to be reported. Until then it may pass.
	Since time.Time
	After time.Duration
	// Doubtful means that the trouble may be over. It is reported only if the condition is True already.
	Doubtful bool
	// Again is when to look again at a trouble although nothing happens; 0 for never.
	Again time.Duration
	// Quiet means that no event reports the beginning of the trouble.
	Quiet bool
	// ByReason means that the condition is for several troubles, and that its reason says which one it reports. The message stays while the
	// reason does. A trouble with another reason must have lasted, too, before it is reported. Events have the reason of the condition.
	ByReason bool
}

// Fold returns the next conditions of an object of a generation that has troubles, one for each type of condition. Conditions about
// which nothing is said stay. The events report the troubles that begin; as a rule, they have the type of the condition as their
// reason. due is when to decide again although nothing happens; 0 for never.
func Fold(conditions []metav1.Condition, generation int64, now metav1.Time, troubles ...Trouble) (
	next []metav1.Condition, events []Event, due time.Duration,
) {
	next = slices.Clone(conditions)
	for _, t := range troubles {
		c := trueCondition(next, t.Type)
		begins := t.begins(c)
		if wait := t.After - now.Sub(t.Since); begins && !t.Doubtful && wait > 0 {
			due = Sooner(due, wait)
			continue
		}
		due = Sooner(due, t.Again)
		if !t.changes(c) {
			continue
		}
		status := metav1.ConditionTrue
		if t.Over {
			status = metav1.ConditionFalse
		}
		meta.SetStatusCondition(&next, metav1.Condition{Type: t.Type, Status: status, Reason: t.Reason, Message: t.Message,
			ObservedGeneration: generation, LastTransitionTime: now})
		if begins && !t.Quiet {
			events = append(events, t.event())
		}
	}
	return next, events, due
}

// begins returns whether a trouble is another one than the condition is about; c is the condition if it is True, or nil.
func (t *Trouble) begins(c *metav1.Condition) bool {
	return !t.Over && (c == nil || t.ByReason && c.Reason != t.Reason)
}

// changes returns whether a trouble changes its condition.
func (t *Trouble) changes(c *metav1.Condition) bool {
	switch {
	case t.begins(c):
		return !t.Doubtful
	case t.Over:
		return c != nil
	}
	return !t.ByReason && (t.Head == "" || c.Reason != t.Reason || !strings.HasPrefix(c.Message, t.Head))
}

// event reports that a trouble begins.
func (t *Trouble) event() Event {
	reason := t.Type
	if t.ByReason {
		reason = t.Reason
	}
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Note: t.Message}
}

// trueCondition returns the condition of a type while it is True; nil otherwise.
func trueCondition(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}
