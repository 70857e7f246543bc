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

func TestTroubles(t *testing.T) {
	quota := hostplan.BlockedChild{What: "Service s could not be created or updated", Refusal: hostplan.Refusal{Reason: "QuotaExceeded", Message: "exceeded quota: q"}}
	away := hostplan.BlockedChild{What: "Service s could not be created or updated", Refusal: hostplan.Refusal{Reason: "FailedCreate", Message: "no answer", MayPass: true}}
	told := &metav1.Condition{Type: leaderworkersetv1.ConditionChildCreationFailure, Status: metav1.ConditionTrue, Reason: "QuotaExceeded", Message: "m"}
	for name, tc := range map[string]struct {
		known   *metav1.Condition
		change  func(o *Observed, p *Plan)
		results Results
		want    string
		wantDue time.Duration
	}{
		"none":            {},
		"a quota":         {results: Results{Blocked: []hostplan.BlockedChild{quota}}, want: "True QuotaExceeded Service s could not be created or updated: exceeded quota: q"},
		"one that passes": {results: Results{Blocked: []hostplan.BlockedChild{away}}, wantDue: hostplan.PassesAfter},
		"one that stays": {
			change:  func(o *Observed, _ *Plan) { o.TroubledSince = o.Now.Add(-time.Minute) },
			results: Results{Blocked: []hostplan.BlockedChild{away}}, want: "True FailedCreate Service s could not be created or updated: no answer",
		},
		"another StatefulSet has the name of that of the leaders": {
			change: func(o *Observed, _ *Plan) { o.Leader, o.LeaderTaken = nil, true },
			want:   "True NameConflict StatefulSet s could not be created: a StatefulSet with this name exists and does not belong to the LeaderWorkerSet; it is created once that one is deleted",
		},
		"another Service has the name": {
			results: Results{TakenServices: []string{"s"}}, wantDue: 10 * time.Second,
			want: "True NameConflict Service s could not be created: a Service with this name exists and does not belong to the LeaderWorkerSet; it is created once that one is deleted",
		},
		"that of a leader that is about to go": {
			change:  func(o *Observed, _ *Plan) { o.Leaders[0].Created = o.Now },
			results: Results{TakenWorkers: []string{"s-0"}}, wantDue: 10 * time.Second,
		},
		"another StatefulSet has the name of workers": {
			results: Results{TakenWorkers: []string{"s-0"}}, wantDue: 10 * time.Second,
			want: "True NameConflict StatefulSet s-0 could not be created: a StatefulSet with this name exists and does not belong to the leader pod of its name; it is created once that one is deleted",
		},
		"all is there":                  {known: told, want: "False ChildrenCreated no child is refused"},
		"the time of the pass was over": {known: told, results: Results{Interrupted: true}, want: "True QuotaExceeded m"},
		"a later plan has more":         {known: told, change: func(_ *Observed, p *Plan) { p.More = true }, want: "True QuotaExceeded m"},
		"the set goes":                  {change: func(o *Observed, _ *Plan) { o.Set.DeletionTimestamp = &o.Now }, results: Results{Blocked: []hostplan.BlockedChild{quota}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1, 2)
			f.Now = metav1.NewTime(f.Now.Truncate(time.Second))
			f.Set.CreationTimestamp = metav1.NewTime(f.Now.Add(-time.Hour))
			f.leader(0).Created = f.Set.CreationTimestamp
			if tc.known != nil {
				f.Set.Status.Conditions = append(f.Set.Status.Conditions, *tc.known)
			}
			p := Plan{Reading: &Reading{}}
			if tc.change != nil {
				tc.change(&f.Observed, &p)
			}
			out, got := Finish(f.Observed, p, tc.results), ""
			status := &f.Set.Status
			if out.Status != nil {
				status = out.Status
			}
			if c := meta.FindStatusCondition(status.Conditions, leaderworkersetv1.ConditionChildCreationFailure); c != nil {
				got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
			if got != tc.want || out.RequeueAfter != tc.wantDue {
				t.Errorf("got %q, again after %s; want %q, %s", got, out.RequeueAfter, tc.want, tc.wantDue)
			}
		})
	}
}
