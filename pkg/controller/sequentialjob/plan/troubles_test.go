// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

func TestRefusedPods(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	told := []metav1.Condition{{Type: batchv1alpha1.ConditionResourcesUnavailable, Status: metav1.ConditionTrue, Reason: "QuotaExceeded", Message: "pods of job 0 cannot be created: q"}}
	former := []metav1.Condition{{Type: batchv1alpha1.ConditionResourcesUnavailable, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonPodsRefused, Message: "pods of job 0 cannot be created: q"}}
	creation := []metav1.Condition{{Type: batchv1alpha1.ConditionResourcesUnavailable, Status: metav1.ConditionTrue, Reason: "QuotaExceeded", Message: "Job 0 could not be created: q"}}
	refused := func(age time.Duration) Child {
		return Child{Refused: &hostplan.Refusal{Reason: "QuotaExceeded", Message: "exceeded quota: q", At: at.Add(-age)}}
	}
	for name, tc := range map[string]struct {
		child      Child
		conditions []metav1.Condition
		since      time.Duration
		want       string
		wantDue    time.Duration
	}{
		"none":                       {},
		"not at first":               {child: refused(0), since: time.Second, wantDue: 4 * time.Second},
		"after some time":            {child: refused(0), since: 5 * time.Second, want: "QuotaExceeded pods of job 0 cannot be created: exceeded quota: q", wantDue: 5 * time.Minute},
		"long ago":                   {child: refused(3 * time.Minute), since: time.Hour},
		"long ago, and told":         {child: refused(20 * time.Minute), conditions: told, want: "QuotaExceeded pods of job 0 cannot be created: q", wantDue: 5 * time.Minute},
		"told by an earlier release": {child: refused(20 * time.Minute), conditions: former, want: "QuotaExceeded pods of job 0 cannot be created: exceeded quota: q", wantDue: 5 * time.Minute},
		"told about the Job itself":  {child: refused(0), conditions: creation, wantDue: 5 * time.Second},
		"a JobSet says so":           {child: Child{ChildRef: ChildRef{Kind: batchv1alpha1.StepKindJobSet}, Refused: &hostplan.Refusal{Reason: "AdmissionDenied", Message: "pods of 1 of 2 Jobs"}}, want: "AdmissionDenied job 0: pods of 1 of 2 Jobs", wantDue: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			sj := &batchv1alpha1.SequentialJob{Status: batchv1alpha1.SequentialJobStatus{Conditions: tc.conditions}}
			q := look(Observed{SequentialJob: sj, PodsRefusedSince: at.Add(-tc.since), Now: at})
			q.current = &tc.child
			s := newStatus(q)
			for _, subject := range []subject{childExists, reportTroubles} {
				w := subject(q, s.next)
				s.fold(&w)
			}
			got := ""
			if c := meta.FindStatusCondition(s.next.Conditions, batchv1alpha1.ConditionResourcesUnavailable); c != nil && c.Status == metav1.ConditionTrue {
				got = c.Reason + " " + c.Message
			}
			if got != tc.want || s.plan.RequeueAfter != tc.wantDue {
				t.Errorf("got %q, again after %s; want %q, %s", got, s.plan.RequeueAfter, tc.want, tc.wantDue)
			}
		})
	}
}

// TestTimeOfOneTroubleAfterAnother has a child that could not be created wait for a queue as soon as it is there.
func TestTimeOfOneTroubleAfterAnother(t *testing.T) {
	w := newWorld(t, queued)
	w.creation, w.refusal, w.queue.Served = Refused, &Refusal{Reason: reasons.QuotaExceeded, Message: "exceeded quota"}, false
	w.stabilize()
	was := meta.FindStatusCondition(w.sj.Status.Conditions, batchv1alpha1.ConditionResourcesUnavailable)
	diff(t, "the first trouble", batchv1alpha1.ReasonQuotaExceeded, was.Reason)
	w.creation, w.refusal = Created, nil
	w.wait(time.Minute).stabilize()
	is := meta.FindStatusCondition(w.sj.Status.Conditions, batchv1alpha1.ConditionResourcesUnavailable)
	diff(t, "the second trouble", batchv1alpha1.ReasonQueueUnavailable, is.Reason)
	diff(t, "since when resources are unavailable", was.LastTransitionTime, is.LastTransitionTime)
}
