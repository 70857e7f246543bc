// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var foldedAt = metav1.NewTime(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))

func TestFold(t *testing.T) {
	earlier := metav1.NewTime(foldedAt.Add(-time.Hour))
	is := func(status metav1.ConditionStatus, reason, message string, generation int64, since metav1.Time) []metav1.Condition {
		return []metav1.Condition{{Type: "Late", Status: status, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: since}}
	}
	late := func(reason, message, head string) Trouble {
		return Trouble{Type: "Late", Reason: reason, Message: message, Head: head}
	}
	byReason := func(reason, message string) Trouble {
		return Trouble{Type: "Late", Reason: reason, Message: message, ByReason: true}
	}
	each := func(reason, message string) Trouble {
		return Trouble{Type: "Late", Reason: reason, Message: message, EachChange: true}
	}
	eachOver := Trouble{Type: "Late", Over: true, Reason: "OnTime", Message: "no train is late", EachChange: true}
	known := is("True", "Rain", "2 trains: it rains", 1, earlier)
	over := Trouble{Type: "Late", Over: true, Reason: "OnTime", Message: "no train is late"}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		trouble    Trouble
		want       []metav1.Condition
		wantEvent  string
		wantDue    time.Duration
	}{
		"it begins":               {trouble: late("Rain", "2 trains: it rains", ""), want: is("True", "Rain", "2 trains: it rains", 2, foldedAt), wantEvent: "Late 2 trains: it rains"},
		"it begins again":         {conditions: is("False", "OnTime", "", 1, earlier), trouble: late("Rain", "m", ""), want: is("True", "Rain", "m", 2, foldedAt), wantEvent: "Late m"},
		"quietly":                 {trouble: Trouble{Type: "Late", Reason: "Rain", Quiet: true}, want: is("True", "Rain", "", 2, foldedAt)},
		"it may pass":             {trouble: Trouble{Type: "Late", Reason: "Rain", Since: earlier.Time, After: 2 * time.Hour, Again: time.Minute}, wantDue: time.Hour},
		"it has lasted":           {trouble: Trouble{Type: "Late", Reason: "Rain", Since: earlier.Time, After: time.Hour, Again: time.Minute}, want: is("True", "Rain", "", 2, foldedAt), wantEvent: "Late ", wantDue: time.Minute},
		"known, it need not last": {conditions: known, trouble: Trouble{Type: "Late", Reason: "Snow", Since: foldedAt.Time, After: time.Hour}, want: is("True", "Snow", "", 2, earlier)},
		"other words":             {conditions: known, trouble: late("Rain", "2 trains: still", "2 trains: "), want: known},
		"other words, another number": {conditions: known, trouble: late("Rain", "3 trains: still", "3 trains: "),
			want: is("True", "Rain", "3 trains: still", 2, earlier)},
		"other words, another reason": {conditions: known, trouble: late("Snow", "2 trains: it snows", "2 trains: "),
			want: is("True", "Snow", "2 trains: it snows", 2, earlier)},
		"other words that count":    {conditions: known, trouble: late("Rain", "2 trains: until 12:05", ""), want: is("True", "Rain", "2 trains: until 12:05", 2, earlier)},
		"doubtful":                  {trouble: Trouble{Type: "Late", Reason: "Rain", Doubtful: true, Since: foldedAt.Time, After: time.Hour, Again: time.Minute}, wantDue: time.Minute},
		"doubtful, and known":       {conditions: known, trouble: Trouble{Type: "Late", Reason: "Rain", Message: "2 trains: late", Head: "2 trains: ", Doubtful: true}, want: known},
		"by reason, it begins":      {trouble: byReason("Rain", "2 trains: it rains"), want: is("True", "Rain", "2 trains: it rains", 2, foldedAt), wantEvent: "Rain 2 trains: it rains"},
		"by reason, other words":    {conditions: known, trouble: byReason("Rain", "3 trains: still"), want: known},
		"by reason, another reason": {conditions: known, trouble: byReason("Snow", "2 trains: it snows"), want: is("True", "Snow", "2 trains: it snows", 2, earlier), wantEvent: "Snow 2 trains: it snows"},
		"by reason, another one that may pass": {conditions: known, trouble: Trouble{Type: "Late", Reason: "Snow", ByReason: true, Since: foldedAt.Time, After: time.Hour, Again: time.Minute},
			want: known, wantDue: time.Hour},
		"by reason, another one that is doubtful": {conditions: known, trouble: Trouble{Type: "Late", Reason: "Snow", ByReason: true, Doubtful: true}, want: known},
		"by reason, known, it need not last": {conditions: known, trouble: Trouble{Type: "Late", Reason: "Rain", ByReason: true, Since: foldedAt.Time, After: time.Hour, Again: time.Minute},
			want: known, wantDue: time.Minute},
		"by reason, it is over":          {conditions: known, trouble: Trouble{Type: "Late", Over: true, Reason: "OnTime", Message: "no train is late", ByReason: true}, want: is("False", "OnTime", "no train is late", 2, foldedAt)},
		"it is over, as of later":        {conditions: is("True", "Rain", "m", 3, earlier), trouble: over, want: is("False", "OnTime", "no train is late", 3, foldedAt)},
		"it is over":                     {conditions: known, trouble: over, want: is("False", "OnTime", "no train is late", 2, foldedAt)},
		"it was over":                    {conditions: is("False", "OnTime", "m", 1, earlier), trouble: over, want: is("False", "OnTime", "m", 1, earlier)},
		"there never was any":            {trouble: over},
		"each change, it begins":         {trouble: each("Rain", "2 trains: it rains"), want: is("True", "Rain", "2 trains: it rains", 2, foldedAt), wantEvent: "Rain 2 trains: it rains"},
		"each change, the same":          {conditions: known, trouble: each("Rain", "2 trains: it rains"), want: known},
		"each change, other words":       {conditions: known, trouble: each("Rain", "3 trains: still"), want: is("True", "Rain", "3 trains: still", 2, earlier), wantEvent: "Rain 3 trains: still"},
		"each change, another reason":    {conditions: known, trouble: each("Snow", "2 trains: it rains"), want: is("True", "Snow", "2 trains: it rains", 2, earlier), wantEvent: "Snow 2 trains: it rains"},
		"each change, quietly":           {conditions: known, trouble: Trouble{Type: "Late", Reason: "Snow", EachChange: true, Quiet: true}, want: is("True", "Snow", "", 2, earlier)},
		"each change, the same head":     {conditions: known, trouble: Trouble{Type: "Late", Reason: "Rain", Message: "2 trains: still", Head: "2 trains: ", EachChange: true}, want: known},
		"each change, another head":      {conditions: known, trouble: Trouble{Type: "Late", Reason: "Rain", Message: "3 trains: still", Head: "3 trains: ", EachChange: true}, want: is("True", "Rain", "3 trains: still", 2, earlier)},
		"each change, it is over":        {conditions: known, trouble: eachOver, want: is("False", "OnTime", "no train is late", 2, foldedAt), wantEvent: "OnTime no train is late"},
		"each change, it was over":       {conditions: is("False", "OnTime", "no train is late", 1, earlier), trouble: eachOver, want: is("False", "OnTime", "no train is late", 1, earlier)},
		"each change, other words again": {conditions: is("False", "Night", "no train runs", 1, earlier), trouble: eachOver, want: is("False", "OnTime", "no train is late", 2, earlier), wantEvent: "OnTime no train is late"},
		"each change, never any":         {trouble: eachOver},
		"it is about something else":     {conditions: known, trouble: Trouble{Type: "Full", Over: true}, want: known},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.conditions)
			next, events, due := Fold(tc.conditions, 2, foldedAt, tc.trouble)
			var wantEvents []Event
			if reason, note, found := strings.Cut(tc.wantEvent, " "); found {
				eventType := corev1.EventTypeWarning
				if tc.trouble.Over {
					eventType = corev1.EventTypeNormal
				}
				wantEvents = []Event{{Type: eventType, Reason: reason, Note: note}}
			}
			if diff := cmp.Diff(tc.want, next) + cmp.Diff(wantEvents, events); diff != "" || due != tc.wantDue {
				t.Errorf("due after %s, want %s:\n%s", due, tc.wantDue, diff)
			}
			if diff := cmp.Diff(before, tc.conditions); diff != "" {
				t.Errorf("the stored conditions changed:\n%s", diff)
			}
		})
	}
}

// TestFoldIsStable folds random troubles twice: the second time changes nothing and reports nothing.
func TestFoldIsStable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func(of string) string { return fmt.Sprint(of, r.IntN(3)) }
	for range 2000 {
		var conditions []metav1.Condition
		for i := range r.IntN(3) {
			status := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[r.IntN(2)]
			conditions = append(conditions, metav1.Condition{Type: fmt.Sprint("t", i), Status: status, Reason: word("r"), Message: word("h") + word("m")})
		}
		var troubles []Trouble
		for i := range 3 {
			head := word("h")
			troubles = append(troubles, Trouble{Type: fmt.Sprint("t", i), Over: r.IntN(3) == 0, Reason: word("r"), Message: head + word("m"), Head: []string{"", head}[r.IntN(2)],
				Since: foldedAt.Add(-time.Duration(r.IntN(20)) * time.Second), After: time.Duration(r.IntN(20)) * time.Second, Doubtful: r.IntN(4) == 0, ByReason: r.IntN(3) == 0, EachChange: r.IntN(3) == 0})
		}
		next, _, due := Fold(conditions, 2, foldedAt, troubles...)
		again, events, dueAgain := Fold(next, 2, foldedAt, troubles...)
		if !cmp.Equal(next, again) || len(events) > 0 || due != dueAgain {
			t.Fatalf("%+v with %+v:\n%s%v", conditions, troubles, cmp.Diff(next, again), events)
		}
	}
}
