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
	// Reason is the reason of the condition.
	Reason string
	// Message is the message of the condition. It begins with Head. A message with this head and for this reason stays as it is, since the
	// rest of it may differ with each try. Without a head, the message is always the latest one.
	Message, Head string
	// Since is since when the trouble lasts, and After is how long it must last to be reported. Until then it may pass.
	Since time.Time
	After time.Duration
	// Again is when to look again at a trouble although nothing happens; 0 for never.
	Again time.Duration
	// Over means that the trouble has ended: the condition becomes False if it is True, with this reason and message.
	Over bool
	// Doubtful means that the trouble may be over. It is reported only if the condition is True already.
	Doubtful bool
	// Quiet means that no event reports the trouble.
	Quiet bool
	// ByReason means that the condition is for several troubles, and that its reason says which one it reports. The message stays while the
	// reason does. A trouble with another reason must have lasted, too, before it is reported. Events have the reason of the condition.
	ByReason bool
	// EachChange means that each change of the condition counts. It has the latest reason and message also while it is False. Events report
	// its changes and its end, too, and have its reason. With a head, they do not report changes while it is True.
	EachChange bool
}

// Fold returns the next conditions of an object of a generation that has troubles, one for each type of condition. Conditions about
// which nothing is said stay. The events report the troubles that begin; as a rule, they have the type of the condition as their
// reason. due is when to decide again although nothing happens; 0 for never. If nothing changes, the conditions themselves are returned.
func Fold(conditions []metav1.Condition, generation int64, now metav1.Time, troubles ...Trouble) (
	next []metav1.Condition, events []Event, due time.Duration,
) {
	next = conditions
	changed := false
	for i := range troubles {
		t := &troubles[i]
		c := meta.FindStatusCondition(next, t.Type)
		begins := t.begins(c)
		if wait := t.After - now.Sub(t.Since); begins && !t.Doubtful && wait > 0 {
			due = Sooner(due, wait)
			continue
		}
		due = Sooner(due, t.Again)
		if !t.changes(c) {
			continue
		}
		if !changed {
			next, changed = slices.Clone(conditions), true
		}
		meta.SetStatusCondition(&next, t.condition(c, generation, now))
		if t.reports(begins) {
			events = append(events, t.event())
		}
	}
	return next, events, due
}

// begins returns whether a trouble is another one than the condition is about; c is the condition, or nil.
func (t *Trouble) begins(c *metav1.Condition) bool {
	return !t.Over && (!isTrue(c) || t.ByReason && c.Reason != t.Reason)
}

// changes returns whether a trouble changes its condition.
func (t *Trouble) changes(c *metav1.Condition) bool {
	switch {
	case t.begins(c):
		return !t.Doubtful
	case t.Over && !isTrue(c):
		return t.EachChange && c != nil && t.differs(c)
	case t.Over:
		return true
	}
	return !t.ByReason && t.differs(c)
}

// differs returns whether a condition has another reason than a trouble, or other words that matter.
func (t *Trouble) differs(c *metav1.Condition) bool {
	if c.Reason != t.Reason {
		return true
	}
	if t.Head != "" {
		return !strings.HasPrefix(c.Message, t.Head)
	}
	return c.Message != t.Message
}

// condition returns the condition that follows another one. Its generation does not go down.
func (t *Trouble) condition(c *metav1.Condition, generation int64, now metav1.Time) metav1.Condition {
	if c != nil {
		generation = max(generation, c.ObservedGeneration)
	}
	status := metav1.ConditionTrue
	if t.Over {
		status = metav1.ConditionFalse
	}
	return metav1.Condition{
		Type: t.Type, Status: status, Reason: t.Reason, Message: t.Message, ObservedGeneration: generation, LastTransitionTime: now,
	}
}

// reports returns whether an event reports a change of the condition.
func (t *Trouble) reports(begins bool) bool {
	return !t.Quiet && (begins || t.EachChange && (t.Over || t.Head == ""))
}

// event reports that a trouble begins, changes or ends.
func (t *Trouble) event() Event {
	e := Event{Type: corev1.EventTypeWarning, Reason: t.Type, Note: t.Message}
	if t.ByReason || t.EachChange {
		e.Reason = t.Reason
	}
	if t.Over {
		e.Type = corev1.EventTypeNormal
	}
	return e
}

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }

// trueCondition returns the condition of a type while it is True; nil otherwise.
func trueCondition(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, conditionType); isTrue(c) {
		return c
	}
	return nil
}
