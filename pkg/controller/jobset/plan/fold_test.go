// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSetCondition(t *testing.T) {
	const conditionType = "Suspended"
	at := func(time metav1.Time, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: time}
	}
	for name, tc := range map[string]struct {
		stored    *metav1.Condition
		next      metav1.Condition
		want      []metav1.Condition
		wantEvent bool
	}{
		"a True condition is added": {
			next: at(now, "True", "R", "m"), want: []metav1.Condition{at(now, "True", "R", "m")}, wantEvent: true,
		},
		"a False condition is never added": {
			next: at(now, "False", "R", "m"),
		},
		"an equal condition changes nothing": {
			stored: new(at(before, "True", "R", "m")), next: at(now, "True", "R", "m"), want: []metav1.Condition{at(before, "True", "R", "m")},
		},
		"another reason keeps the time": {
			stored: new(at(before, "True", "R", "m")), next: at(now, "True", "S", "m"), want: []metav1.Condition{at(before, "True", "S", "m")}, wantEvent: true,
		},
		"another message keeps the time": {
			stored: new(at(before, "False", "R", "m")), next: at(now, "False", "R", "n"), want: []metav1.Condition{at(before, "False", "R", "n")}, wantEvent: true,
		},
		"another status takes a new time": {
			stored: new(at(before, "True", "R", "m")), next: at(now, "False", "R", "m"), want: []metav1.Condition{at(now, "False", "R", "m")}, wantEvent: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet()
			if tc.stored != nil {
				set.Status.Conditions = []metav1.Condition{*tc.stored}
			}
			d := draft{next: set.Status.DeepCopy()}.with(now, wants(condition{of: conditionType, status: tc.next.Status, reason: tc.next.Reason, message: tc.next.Message}))
			diff(t, "conditions", tc.want, d.next.Conditions)
			var want []Event
			if tc.wantEvent {
				want = []Event{{Type: "Normal", Reason: tc.next.Reason, Note: tc.next.Message}}
			}
			diff(t, "events", want, d.events)
		})
	}
}

func TestConditionsKeepTheirOrder(t *testing.T) {
	d := draft{next: newSet().Status.DeepCopy()}.with(now, wants(
		condition{of: "B", status: "True", reason: "R", message: "m"},
		condition{of: "A", status: "True", reason: "R", message: "m"},
		condition{of: "B", status: "False", reason: "R", message: "m"},
	))
	var order []string
	for _, c := range d.next.Conditions {
		order = append(order, c.Type)
	}
	diff(t, "order", []string{"B", "A"}, order)
}

func TestObservedGeneration(t *testing.T) {
	for name, tc := range map[string]struct {
		stored int64
		change bool
		want   []int64
	}{
		"a new condition has that of the set":                                    {stored: 7, change: true, want: []int64{7, 7}},
		"an older one is brought up to date":                                     {stored: 5, want: []int64{7}},
		"one stored by an earlier version is no reason to write":                 {stored: 0},
		"one stored by an earlier version is brought up to date with the others": {stored: 0, change: true, want: []int64{7, 7}},
		"one of a later snapshot is left alone":                                  {stored: 8},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet()
			set.Generation = 7
			set.Status.Conditions = []metav1.Condition{{Type: "A", Status: "True", Reason: "R", ObservedGeneration: tc.stored}}
			d := draft{next: set.Status.DeepCopy()}.with(now, wants(condition{of: "A", status: "True", reason: "R", message: ""}))
			if tc.change {
				d = d.with(now, wants(condition{of: "B", status: "True", reason: "R", message: "m"}))
			}
			var got []int64
			if next := d.result(set); next != nil {
				for _, c := range next.Conditions {
					got = append(got, c.ObservedGeneration)
				}
			}
			diff(t, "generations", tc.want, got)
		})
	}
}
