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

// BlockedChild is a child that is not as its owner wants it, because the API refuses it, its name is taken, or another party undoes each
// write.
type BlockedChild struct {
	// What names the child, and what failed: "Service serve could not be created".
	What string
	Refusal
}

// message returns what the condition says about the child.
func (b BlockedChild) message() string { return b.head() + b.Message }

func (b BlockedChild) head() string { return b.What + ": " }

// isIn returns whether a condition is about the child.
func (b BlockedChild) isIn(c *metav1.Condition) bool {
	return b.Reason == c.Reason && strings.HasPrefix(c.Message, b.head())
}

// ChildTroubles returns what the condition of a type says next about the blocked children that a pass has found, of which there have been
// some since a time; nothing if the condition stays. A child that the next try may mend is reported once that has lasted. The condition
// stays with the child that it is about, and its message changes only if it says when the controller tries again, so that retries cost no
// writes. A pass that was not complete has not tried all children, and so ends nothing.
func ChildTroubles(conditionType string, conditions []metav1.Condition, blocked []BlockedChild, since time.Time, complete bool) []Trouble {
	c := trueCondition(conditions, conditionType)
	if len(blocked) == 0 {
		if !complete {
			return nil
		}
		return []Trouble{{Type: conditionType, Over: true, Reason: reasons.ChildrenCreated, Message: "no child is refused", Quiet: true}}
	}
	inOrder := slices.SortedFunc(slices.Values(blocked), func(a, b BlockedChild) int {
		return cmp.Or(cmp.Compare(passes(a), passes(b)), cmp.Compare(a.What, b.What))
	})
	child := inOrder[0]
	if c != nil {
		same := slices.IndexFunc(inOrder, func(b BlockedChild) bool { return b.isIn(c) })
		switch {
		case same >= 0 && c.Reason == reasons.UndoneByOthers:
			child = inOrder[same]
		case same >= 0, child.MayPass:
			return nil
		}
	}
	t := Trouble{Type: conditionType, Reason: child.Reason, Message: child.message(), Quiet: true}
	if child.MayPass {
		t.Since, t.After = since, PassesAfter
	}
	return []Trouble{t}
}

func passes(b BlockedChild) int {
	if b.MayPass {
		return 1
	}
	return 0
}
