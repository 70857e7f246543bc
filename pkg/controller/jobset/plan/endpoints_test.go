// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestServiceEndpointsByCluster has the condition follow what is known, without a write of its own at once, and without
// an event: the controller of addresses sends one.
func TestServiceEndpointsByCluster(t *testing.T) {
	refused := withCondition(jobsetv1alpha2.ServiceEndpointsByCluster, metav1.ConditionTrue, "ServiceShared", "earlier words")
	why := &Refusal{Reason: "CanaryNotResolved", Message: "it does not resolve"}
	for name, tc := range map[string]struct {
		set     []func(*jobsetv1alpha2.JobSet)
		refusal *Refusal
		jobs    []*batchv1.Job
		want    string
		waits   bool
	}{
		"nothing is known":                {},
		"nothing is known any more":       {set: []func(*jobsetv1alpha2.JobSet){refused}, want: "True ServiceShared earlier words"},
		"a set that is served as it asks": {refusal: &Refusal{}},
		"a set that is refused":           {refusal: why, want: "True CanaryNotResolved it does not resolve", waits: true},
		"another reason":                  {set: []func(*jobsetv1alpha2.JobSet){refused}, refusal: why, want: "True CanaryNotResolved it does not resolve", waits: true},
		"refused no more": {
			set: []func(*jobsetv1alpha2.JobSet){refused}, refusal: &Refusal{}, waits: true,
			want: "False AsRequested the addresses of the Service are written as the JobSet asks",
		},
		"the set has completed": {
			set: []func(*jobsetv1alpha2.JobSet){refused}, refusal: why, jobs: []*batchv1.Job{jobNamed("w", 0, succeeded)},
			want: "False JobSetCompleted jobset completed successfully",
		},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(append(tc.set, with("w", 1))...)
			if tc.jobs == nil {
				tc.jobs = []*batchv1.Job{jobNamed("w", 0)}
				js.Status = *statusAfter(observe(js, tc.jobs...), Decide(observe(js, tc.jobs...))) // nothing else is to be written
			}
			o := observe(js, tc.jobs...)
			o.EndpointsRefusal = tc.refusal
			p := Decide(o)
			got := ""
			if c := meta.FindStatusCondition(statusAfter(o, p).Conditions, jobsetv1alpha2.ServiceEndpointsByCluster); c != nil {
				got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
			diff(t, "condition", tc.want, got)
			if tc.waits {
				diff(t, "events", 0, len(p.Events))
				diff(t, "it waits for other writes", true, mayBeDeferred(o, p))
			}
		})
	}
}
