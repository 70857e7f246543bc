// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
)

// Trouble is a child that is not as its owner wants it, because the API refuses it, its name is taken, or another party undoes each write.
type Trouble struct {
	// What names the child, and what failed: "Service serve could not be created".
	What string
	Refusal
}

// ChildFailure is what the condition about troubles says next. The zero value leaves it as it is.
type ChildFailure struct {
	Status          metav1.ConditionStatus
	Reason, Message string
	// Due is when it may change although nothing happens; 0 for never.
	Due time.Duration
}

// ChildFailureOf returns what the condition says next, given what it says now and the troubles of a pass, which have lasted since a time.
// A trouble that may pass is reported once it has lasted. The message stays while its trouble does, so that retries cost no writes,
// unless it says when the controller tries again. A pass that was not complete has not tried all children, and so ends nothing.
func ChildFailureOf(c *metav1.Condition, troubles []Trouble, since, now time.Time, complete bool) ChildFailure {
	known := c != nil && c.Status == metav1.ConditionTrue
	if len(troubles) == 0 {
		return withoutTrouble(known && complete)
	}
	inOrder := slices.SortedFunc(slices.Values(troubles), func(a, b Trouble) int {
		return cmp.Or(cmp.Compare(passes(a), passes(b)), cmp.Compare(a.What, b.What))
	})
	first, same := inOrder[0], -1
	if known {
		same = slices.IndexFunc(inOrder, func(t Trouble) bool { return t.isThatOf(c) })
	}
	switch {
	case same >= 0 && c.Reason == reasons.UndoneByOthers:
		first = inOrder[same]
	case same >= 0:
		return ChildFailure{}
	case first.MayPass && known:
		return ChildFailure{}
	case first.MayPass && now.Sub(since) < PassesAfter:
		return ChildFailure{Due: PassesAfter - now.Sub(since)}
	}
	return ChildFailure{Status: metav1.ConditionTrue, Reason: first.Reason, Message: first.What + ": " + first.Message}
}

// isThatOf returns whether a condition is about a trouble.
func (t Trouble) isThatOf(c *metav1.Condition) bool {
	return t.Reason == c.Reason && strings.HasPrefix(c.Message, t.What+": ")
}

// withoutTrouble returns what the condition says after a pass without troubles, which may end it.
func withoutTrouble(ends bool) ChildFailure {
	if !ends {
		return ChildFailure{}
	}
	return ChildFailure{Status: metav1.ConditionFalse, Reason: reasons.ChildrenCreated, Message: "no child is refused"}
}

func passes(t Trouble) int {
	if t.MayPass {
		return 1
	}
	return 0
}
