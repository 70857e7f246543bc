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

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestUnschedulablePods(t *testing.T) {
	waiting := withCondition(jobsetv1alpha2.PodsUnschedulable, metav1.ConditionTrue, "Unschedulable", "2 pods cannot be scheduled: earlier words")
	for name, tc := range map[string]struct {
		set       []func(*jobsetv1alpha2.JobSet)
		jobs      []*batchv1.Job
		pods      int
		since     time.Duration
		want      string
		wantDue   time.Duration
		wantEvent string
	}{
		"none":                        {},
		"not at first":                {pods: 2, since: 5 * time.Second, wantDue: 10 * time.Second},
		"after some time":             {pods: 2, since: 15 * time.Second, want: "True Unschedulable 2 pods cannot be scheduled: no node fits", wantEvent: "Warning Unschedulable"},
		"one pod":                     {pods: 1, since: time.Hour, want: "True Unschedulable 1 pod cannot be scheduled: no node fits", wantEvent: "Warning Unschedulable"},
		"the same number":             {set: []func(*jobsetv1alpha2.JobSet){waiting}, pods: 2, want: "True Unschedulable 2 pods cannot be scheduled: earlier words"},
		"another number":              {set: []func(*jobsetv1alpha2.JobSet){waiting}, pods: 3, want: "True Unschedulable 3 pods cannot be scheduled: no node fits"},
		"none any more":               {set: []func(*jobsetv1alpha2.JobSet){waiting}, want: "False PodsScheduled no pod waits for a node", wantEvent: "Normal PodsScheduled"},
		"the set has failed":          {set: []func(*jobsetv1alpha2.JobSet){waiting}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, pods: 2, want: "False JobSetFailed jobset failed", wantEvent: "Normal JobSetFailed"},
		"the set has completed":       {set: []func(*jobsetv1alpha2.JobSet){waiting}, jobs: []*batchv1.Job{jobNamed("w", 0, succeeded)}, pods: 2, want: "False JobSetCompleted jobset completed successfully", wantEvent: "Normal JobSetCompleted"},
		"a set that finished earlier": {set: []func(*jobsetv1alpha2.JobSet){completed}, pods: 2, since: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.jobs == nil {
				tc.jobs = []*batchv1.Job{jobNamed("w", 0)}
			}
			o := observe(newSet(append(tc.set, with("w", 1))...), tc.jobs...)
			if tc.pods > 0 {
				o.Unschedulable = Unschedulable{Pods: tc.pods, Reason: "no node fits", Since: now.Add(-tc.since)}
			}
			p := Decide(o)
			got, event := "", ""
			if c := meta.FindStatusCondition(statusAfter(o, p).Conditions, jobsetv1alpha2.PodsUnschedulable); c != nil {
				got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
				for _, e := range p.Events {
					if e.Reason == c.Reason {
						event = e.Type + " " + e.Reason
					}
				}
			}
			diff(t, "condition", tc.want, got)
			diff(t, "event", tc.wantEvent, event)
			diff(t, "again after", tc.wantDue, p.RequeueAfter)
		})
	}
}
