// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

func TestRefusedPods(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	told := metav1.Condition{Type: leaderworkersetv1.ConditionPodCreationFailure, Status: metav1.ConditionTrue, Reason: "QuotaExceeded", Message: "pods of 2 StatefulSets cannot be created: earlier words"}
	for name, tc := range map[string]struct {
		told       bool
		refused    int
		since, age time.Duration
		want       string
		wantDue    time.Duration
	}{
		"none":               {},
		"not at first":       {refused: 1, since: time.Second, wantDue: 4 * time.Second},
		"after some time":    {refused: 1, since: 5 * time.Second, want: "True QuotaExceeded pods of 1 StatefulSet cannot be created: exceeded quota: q", wantDue: hostplan.PodsRefusedAgain},
		"long ago":           {refused: 1, since: time.Hour, age: 3 * time.Minute, wantDue: hostplan.PodsRefusedAgain},
		"long ago, and told": {told: true, refused: 2, age: 20 * time.Minute, want: "True QuotaExceeded " + told.Message, wantDue: hostplan.PodsRefusedAgain},
		"another number":     {told: true, refused: 3, want: "True QuotaExceeded pods of 3 StatefulSets cannot be created: exceeded quota: q", wantDue: hostplan.PodsRefusedAgain},
		"none any more":      {told: true, want: "False PodsCreated no pods are refused"},
	} {
		t.Run(name, func(t *testing.T) {
			set := &leaderworkersetv1.LeaderWorkerSet{}
			if tc.told {
				set.Status.Conditions = []metav1.Condition{told}
			}
			o := Observed{Set: set, Now: at}
			for range tc.refused {
				o.RefusedPods = append(o.RefusedPods, hostplan.Refusal{Reason: "QuotaExceeded", Message: "exceeded quota: q", At: at.Add(-tc.age)})
				o.PodsRefusedSince = at.Add(-tc.since)
			}
			b := newStatus(o)
			due, got := b.fold(podsRefused(&o)), ""
			if c := meta.FindStatusCondition(b.next.Conditions, leaderworkersetv1.ConditionPodCreationFailure); c != nil {
				got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
			if got != tc.want || due != tc.wantDue {
				t.Errorf("got %q, again after %s; want %q, %s", got, due, tc.want, tc.wantDue)
			}
		})
	}
}
