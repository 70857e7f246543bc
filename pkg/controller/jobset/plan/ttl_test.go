// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestTimeToLiveAfterCancellation(t *testing.T) {
	failed := func(reason string, ago time.Duration) func(*jobsetv1alpha2.JobSet) {
		return func(js *jobsetv1alpha2.JobSet) {
			withCondition(jobsetv1alpha2.JobSetFailed, metav1.ConditionTrue, reason, "")(js)
			js.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-ago))
			js.Status.TerminalState = jobsetv1alpha2.TerminalStateFailed
		}
	}
	for name, tc := range map[string]struct {
		set []func(*jobsetv1alpha2.JobSet)
		// wantAfter is the time until the set is deleted; -1 for never.
		wantAfter time.Duration
	}{
		"a failed set without time is deleted at once":    {set: []func(*jobsetv1alpha2.JobSet){failed("FailedJobs", 0), withTTL(0)}},
		"a cancelled set without time stays five minutes": {set: []func(*jobsetv1alpha2.JobSet){failed("Cancelled", time.Minute), withTTL(0)}, wantAfter: 4 * time.Minute},
		"a cancelled set is deleted after five minutes":   {set: []func(*jobsetv1alpha2.JobSet){failed("Cancelled", 5*time.Minute), withTTL(299)}},
		"a cancelled set with more time stays that long":  {set: []func(*jobsetv1alpha2.JobSet){failed("Cancelled", time.Minute), withTTL(600)}, wantAfter: 9 * time.Minute},
		"a cancelled set without time to live is kept":    {set: []func(*jobsetv1alpha2.JobSet){failed("Cancelled", time.Hour)}, wantAfter: -1},
		"so it is for a set that another controller runs": {set: []func(*jobsetv1alpha2.JobSet){failed("Cancelled", 0), withTTL(0), ofAnother}, wantAfter: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(observe(newSet(append(tc.set, with("w", 1))...)))
			diff(t, "whether the set is deleted", tc.wantAfter == 0, p.DeleteJobSet)
			diff(t, "when to look again", max(tc.wantAfter, 0), p.RequeueAfter)
		})
	}
}
