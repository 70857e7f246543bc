// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

func TestRefusedPods(t *testing.T) {
	const words = "exceeded quota: q, requested: pods=1"
	told := withCondition(jobsetv1alpha2.PodCreationFailure, metav1.ConditionTrue, "QuotaExceeded", "pods of 2 of 2 Jobs cannot be created: earlier words")
	for name, tc := range map[string]struct {
		set     []func(*jobsetv1alpha2.JobSet)
		jobs    []*batchv1.Job
		refused int
		reason  string
		since   time.Duration
		age     time.Duration
		want    string
		wantDue time.Duration
	}{
		"none":                  {},
		"not at first":          {refused: 1, since: time.Second, wantDue: 4 * time.Second},
		"after some time":       {refused: 1, since: 5 * time.Second, want: "True QuotaExceeded pods of 1 of 2 Jobs cannot be created: " + words, wantDue: hostplan.PodsRefusedAgain},
		"long ago":              {refused: 1, since: 5 * time.Second, age: 3 * time.Minute, wantDue: hostplan.PodsRefusedAgain},
		"long ago, and told":    {set: []func(*jobsetv1alpha2.JobSet){told}, refused: 2, age: 20 * time.Minute, want: "True QuotaExceeded pods of 2 of 2 Jobs cannot be created: earlier words", wantDue: hostplan.PodsRefusedAgain},
		"another number":        {set: []func(*jobsetv1alpha2.JobSet){told}, refused: 1, want: "True QuotaExceeded pods of 1 of 2 Jobs cannot be created: " + words, wantDue: hostplan.PodsRefusedAgain},
		"for another reason":    {set: []func(*jobsetv1alpha2.JobSet){told}, refused: 2, reason: "AdmissionDenied", want: "True AdmissionDenied pods of 2 of 2 Jobs cannot be created: " + words, wantDue: hostplan.PodsRefusedAgain},
		"none any more":         {set: []func(*jobsetv1alpha2.JobSet){told}, want: "False PodsCreated no pods are refused"},
		"the set has failed":    {set: []func(*jobsetv1alpha2.JobSet){told}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, refused: 1, want: "False JobSetFailed jobset failed"},
		"of an earlier attempt": {set: []func(*jobsetv1alpha2.JobSet){told, func(js *jobsetv1alpha2.JobSet) { js.Status.Restarts = 1 }}, refused: 2, want: "False PodsCreated no pods are refused"},
		"the set has completed": {set: []func(*jobsetv1alpha2.JobSet){completed}, refused: 1, since: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.jobs == nil {
				tc.jobs = []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)}
			}
			o := observe(newSet(append(tc.set, with("w", 2))...), tc.jobs...)
			for i := range tc.refused {
				if o.RefusedPods == nil {
					o.RefusedPods, o.PodsRefusedSince = map[types.UID]Refusal{}, now.Add(-tc.since)
				}
				refusal := Refusal{Reason: "QuotaExceeded", Message: words, At: now.Add(-tc.age)}
				if tc.reason != "" {
					refusal.Reason = tc.reason
				}
				o.RefusedPods[tc.jobs[i].UID] = refusal
			}
			p := Decide(o)
			got := ""
			if c := meta.FindStatusCondition(statusAfter(o, p).Conditions, jobsetv1alpha2.PodCreationFailure); c != nil {
				got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
			diff(t, "condition", tc.want, got)
			diff(t, "again after", tc.wantDue, p.RequeueAfter)
		})
	}
}
