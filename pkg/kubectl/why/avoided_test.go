// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestNoteOnAvoidedNodes(t *testing.T) {
	until := time.Date(2026, 3, 9, 14, 45, 0, 0, time.UTC)
	off := func(count int, change ...func(*jobsetv1alpha2.Attempt)) *jobsetv1alpha2.JobSet {
		a := jobsetv1alpha2.Attempt{Number: 9}
		for i := range count {
			a.AvoidedNodes = append(a.AvoidedNodes, jobsetv1alpha2.AvoidedNode{
				Name: fmt.Sprintf("n%d", i), Attempt: int32(8 - i), Reason: "Evicted", Until: metav1.NewTime(until)})
		}
		for _, f := range change {
			f(&a)
		}
		return &jobsetv1alpha2.JobSet{Status: jobsetv1alpha2.JobSetStatus{Attempts: []jobsetv1alpha2.Attempt{a}}}
	}
	const n0 = "n0 until 2026-03-09T14:45:00Z (attempt 8: Evicted)"
	for name, tc := range map[string]struct {
		set  *jobsetv1alpha2.JobSet
		now  time.Time
		want string
	}{
		"no set":       {},
		"no attempt":   {set: &jobsetv1alpha2.JobSet{}},
		"no node":      {set: off(0)},
		"a node":       {set: off(1), want: "pods of attempt 9 keep off " + n0},
		"many nodes":   {set: off(5), want: "pods of attempt 9 keep off " + n0 + ", n1 until 2026-03-09T14:45:00Z (attempt 7: Evicted), n2 until 2026-03-09T14:45:00Z (attempt 6: Evicted), and 2 more"},
		"time is over": {set: off(1), now: until},
		"it has ended": {set: off(1, func(a *jobsetv1alpha2.Attempt) { a.EndTime = ptr.To(metav1.NewMicroTime(until)) })},
		"are forgotten": {set: off(1, func(a *jobsetv1alpha2.Attempt) { a.ForgetTime = ptr.To(metav1.NewMicroTime(until)) }),
			want: "pods of attempt 9 may run again on nodes that failed earlier, because there was no room elsewhere: " + n0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(avoidedNodes(tc.set, tc.now), "|"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	e := healthy(set(func(js *jobsetv1alpha2.JobSet) {
		js.Status.Attempts = off(1, func(a *jobsetv1alpha2.Attempt) {
			a.AvoidedNodes[0].Until = metav1.NewTime(time.Now().Add(24 * time.Hour))
		}).Status.Attempts
	}))
	if r := Diagnose(e); !slices.ContainsFunc(r.Notes, func(note string) bool { return strings.HasPrefix(note, "pods of attempt 9 keep off n0 until ") }) {
		t.Errorf("notes: %q", r.Notes)
	}
}
