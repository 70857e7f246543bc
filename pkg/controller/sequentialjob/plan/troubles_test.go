// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

func TestRefusedPods(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	told := []metav1.Condition{{Type: batchv1alpha1.ConditionResourcesUnavailable, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonPodsRefused}}
	lacks := Child{LacksPods: true}
	refused := func(since, age time.Duration) RefusedPods {
		return RefusedPods{Message: "exceeded quota: q", Since: at.Add(-since), At: at.Add(-age)}
	}
	for name, tc := range map[string]struct {
		child      Child
		conditions []metav1.Condition
		refused    RefusedPods
		want       string
		wantDue    time.Duration
	}{
		"none":               {child: lacks},
		"not at first":       {child: lacks, refused: refused(time.Second, 0), wantDue: 4 * time.Second},
		"after some time":    {child: lacks, refused: refused(5*time.Second, 0), want: "exceeded quota: q"},
		"long ago":           {child: lacks, refused: refused(time.Hour, 3*time.Minute)},
		"long ago, and told": {child: lacks, conditions: told, refused: refused(0, 20*time.Minute), want: "exceeded quota: q"},
		"a JobSet says so":   {child: Child{RefusedPods: "pods of 1 of 2 Jobs"}, want: "pods of 1 of 2 Jobs"},
	} {
		t.Run(name, func(t *testing.T) {
			sj := &batchv1alpha1.SequentialJob{Status: batchv1alpha1.SequentialJobStatus{Conditions: tc.conditions}}
			o := Observed{SequentialJob: sj, RefusedPods: tc.refused, Now: at}
			if got, due := refusedPods(o, tc.child, &sj.Status); got != tc.want || due != tc.wantDue {
				t.Errorf("got %q, again after %s; want %q, %s", got, due, tc.want, tc.wantDue)
			}
		})
	}
}
