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

func TestChildFailureOf(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	quota := Trouble{"StatefulSet s-1 could not be created", Refusal{Reason: "QuotaExceeded", Message: "exceeded quota: q"}}
	denied := Trouble{"Service s could not be created", Refusal{Reason: "AdmissionDenied", Message: "no"}}
	away := Trouble{"Revision s could not be created", Refusal{Reason: "FailedCreate", Message: "no answer", MayPass: true}}
	told := func(reason, message string) *metav1.Condition {
		return &metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	for name, tc := range map[string]struct {
		known      *metav1.Condition
		troubles   []Trouble
		lasted     time.Duration
		incomplete bool
		want       ChildFailure
	}{
		"nothing":                            {},
		"the first one by name":              {troubles: []Trouble{quota, denied}, want: ChildFailure{Status: "True", Reason: "AdmissionDenied", Message: "Service s could not be created: no"}},
		"one that may pass comes last":       {troubles: []Trouble{away, quota}, want: ChildFailure{Status: "True", Reason: "QuotaExceeded", Message: "StatefulSet s-1 could not be created: exceeded quota: q"}},
		"one that may pass, at first":        {troubles: []Trouble{away}, lasted: 5 * time.Second, want: ChildFailure{Due: 10 * time.Second}},
		"one that may pass, and stays":       {troubles: []Trouble{away}, lasted: PassesAfter, want: ChildFailure{Status: "True", Reason: "FailedCreate", Message: "Revision s could not be created: no answer"}},
		"other words for the same":           {known: told("QuotaExceeded", "StatefulSet s-1 could not be created: exceeded quota: q, used: 3"), troubles: []Trouble{quota, denied}},
		"another reason":                     {known: told("Forbidden", "StatefulSet s-1 could not be created: no right"), troubles: []Trouble{quota}, want: ChildFailure{Status: "True", Reason: "QuotaExceeded", Message: "StatefulSet s-1 could not be created: exceeded quota: q"}},
		"the API is away":                    {known: told("QuotaExceeded", "StatefulSet s-1 could not be created: m"), troubles: []Trouble{away}, lasted: time.Hour},
		"all children are created":           {known: told("QuotaExceeded", "m"), want: ChildFailure{Status: "False", Reason: reasons.ChildrenCreated, Message: "no child is refused"}},
		"not all of them were tried":         {known: told("QuotaExceeded", "m"), incomplete: true},
		"it was over before, and still is":   {known: &metav1.Condition{Status: metav1.ConditionFalse, Reason: reasons.ChildrenCreated}},
		"it was over before, and comes back": {known: &metav1.Condition{Status: metav1.ConditionFalse, Reason: reasons.ChildrenCreated}, troubles: []Trouble{denied}, want: ChildFailure{Status: "True", Reason: "AdmissionDenied", Message: "Service s could not be created: no"}},
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
	undone := func(name, at string) Trouble {
		return Trouble{What: name, Refusal: Refusal{Reason: reasons.UndoneByOthers, Message: "it was deleted; the controller creates it again at " + at}}
	}
	c := &metav1.Condition{Status: metav1.ConditionTrue, Reason: reasons.UndoneByOthers, Message: "b: it was deleted; the controller creates it again at 1"}
	got := ChildFailureOf(c, []Trouble{undone("a", "3"), undone("b", "2")}, now, now, true)
	want := ChildFailure{Status: metav1.ConditionTrue, Reason: reasons.UndoneByOthers, Message: "b: it was deleted; the controller creates it again at 2"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
