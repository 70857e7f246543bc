// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
)

// ChildFailure is what the condition about blocked children says next. The zero value leaves it as it is.
type ChildFailure struct {
	Status          metav1.ConditionStatus
	Reason, Message string
	// Due is when it may change although nothing happens; 0 for never.
	Due time.Duration
}

// ChildFailureOf folds the blocked children of a pass into a condition.
func ChildFailureOf(c *metav1.Condition, blocked []BlockedChild, since, now time.Time, complete bool) ChildFailure {
	var conditions []metav1.Condition
	if c != nil {
		conditions = []metav1.Condition{*c}
	}
	next, _, due := Fold(conditions, 1, metav1.NewTime(now), ChildTroubles("", conditions, blocked, since, complete)...)
	if len(next) == 0 || c != nil && cmp.Equal(next, conditions) {
		return ChildFailure{Due: due}
	}
	return ChildFailure{Status: next[0].Status, Reason: next[0].Reason, Message: next[0].Message, Due: due}
}

func TestChildFailureOf(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	quota := BlockedChild{"StatefulSet s-1 could not be created", Refusal{Reason: "QuotaExceeded", Message: "exceeded quota: q"}}
	denied := BlockedChild{"Service s could not be created", Refusal{Reason: "AdmissionDenied", Message: "no"}}
	away := BlockedChild{"Revision s could not be created", Refusal{Reason: "FailedCreate", Message: "no answer", MayPass: true}}
	told := func(reason, message string) *metav1.Condition {
		return &metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	for name, tc := range map[string]struct {
		known      *metav1.Condition
		troubles   []BlockedChild
		lasted     time.Duration
		incomplete bool
		want       ChildFailure
	}{
		"nothing":                            {},
		"the first one by name":              {troubles: []BlockedChild{quota, denied}, want: ChildFailure{Status: "True", Reason: "AdmissionDenied", Message: "Service s could not be created: no"}},
		"one that may pass comes last":       {troubles: []BlockedChild{away, quota}, want: ChildFailure{Status: "True", Reason: "QuotaExceeded", Message: "StatefulSet s-1 could not be created: exceeded quota: q"}},
		"one that may pass, at first":        {troubles: []BlockedChild{away}, lasted: 5 * time.Second, want: ChildFailure{Due: 10 * time.Second}},
		"one that may pass, and stays":       {troubles: []BlockedChild{away}, lasted: PassesAfter, want: ChildFailure{Status: "True", Reason: "FailedCreate", Message: "Revision s could not be created: no answer"}},
		"other words for the same":           {known: told("QuotaExceeded", "StatefulSet s-1 could not be created: exceeded quota: q, used: 3"), troubles: []BlockedChild{quota, denied}},
		"another reason":                     {known: told("Forbidden", "StatefulSet s-1 could not be created: no right"), troubles: []BlockedChild{quota}, want: ChildFailure{Status: "True", Reason: "QuotaExceeded", Message: "StatefulSet s-1 could not be created: exceeded quota: q"}},
		"the API is away":                    {known: told("QuotaExceeded", "StatefulSet s-1 could not be created: m"), troubles: []BlockedChild{away}, lasted: time.Hour},
		"all children are created":           {known: told("QuotaExceeded", "m"), want: ChildFailure{Status: "False", Reason: reasons.ChildrenCreated, Message: "no child is refused"}},
		"not all of them were tried":         {known: told("QuotaExceeded", "m"), incomplete: true},
		"it was over before, and still is":   {known: &metav1.Condition{Status: metav1.ConditionFalse, Reason: reasons.ChildrenCreated}},
		"it was over before, and comes back": {known: &metav1.Condition{Status: metav1.ConditionFalse, Reason: reasons.ChildrenCreated}, troubles: []BlockedChild{denied}, want: ChildFailure{Status: "True", Reason: "AdmissionDenied", Message: "Service s could not be created: no"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ChildFailureOf(tc.known, tc.troubles, now.Add(-tc.lasted), now, !tc.incomplete)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTimeOfTroubleIsUpdated has a trouble whose message says when the controller tries again.
func TestTimeOfTroubleIsUpdated(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	undone := func(name, at string) BlockedChild {
		return BlockedChild{What: name, Refusal: Refusal{Reason: reasons.UndoneByOthers, Message: "it was deleted; the controller creates it again at " + at}}
	}
	c := &metav1.Condition{Status: metav1.ConditionTrue, Reason: reasons.UndoneByOthers, Message: "b: it was deleted; the controller creates it again at 1"}
	got := ChildFailureOf(c, []BlockedChild{undone("a", "3"), undone("b", "2")}, now, now, true)
	want := ChildFailure{Status: metav1.ConditionTrue, Reason: reasons.UndoneByOthers, Message: "b: it was deleted; the controller creates it again at 2"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
