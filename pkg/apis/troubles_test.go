// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	batchhelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	dshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// Each trouble of a kind is the reason of an object that has it. Of several, the first in the list is.
func TestTroublesAreReasons(t *testing.T) {
	for kind, tc := range map[string]struct {
		troubles []string
		status   func(condition string) metav1.ConditionStatus
		reason   func(conditions []metav1.Condition) string
	}{
		"JobSet": {helper.Troubles(), nil, func(conditions []metav1.Condition) string {
			js := builders.JobSet("a", builders.WithJobs("w", 1, 1))
			js.Status = jobsetv1alpha2.JobSetStatus{Conditions: conditions}
			reason, _ := helper.Reason(js)
			return reason
		}},
		"LeaderWorkerSet": {lwshelper.Troubles(), nil, func(conditions []metav1.Condition) string {
			return lwshelper.Summarize(&leaderworkersetv1.LeaderWorkerSet{Status: leaderworkersetv1.LeaderWorkerSetStatus{Conditions: conditions}}).Reason
		}},
		"DisaggregatedSet": {dshelper.Troubles(), nil, func(conditions []metav1.Condition) string {
			return dshelper.Summarize(&disaggregatedsetv1.DisaggregatedSet{Status: disaggregatedsetv1.DisaggregatedSetStatus{Conditions: conditions}}).Reason
		}},
		"SequentialJob": {sequenceTroubles(), statusOfTrouble, func(conditions []metav1.Condition) string {
			return batchhelper.Reason(&batchv1alpha1.SequentialJob{Status: batchv1alpha1.SequentialJobStatus{Conditions: conditions}})
		}},
	} {
		var conditions []metav1.Condition
		for i := len(tc.troubles) - 1; i >= 0; i-- {
			c := metav1.Condition{Type: tc.troubles[i], Status: metav1.ConditionTrue, Reason: "Of" + tc.troubles[i]}
			if tc.status != nil {
				c.Status = tc.status(c.Type)
			}
			if c.Type == batchv1alpha1.ConditionFailed && kind == "SequentialJob" {
				c.Reason = batchv1alpha1.ReasonReconciliationError // any other one is an end
			}
			conditions = append(conditions, c)
			if got := tc.reason([]metav1.Condition{c}); got != c.Reason {
				t.Errorf("%s with %s only: reason %q, want %q", kind, c.Type, got, c.Reason)
			}
			if got := tc.reason(conditions); got != c.Reason {
				t.Errorf("%s with %s and all after it: reason %q, want %q", kind, c.Type, got, c.Reason)
			}
		}
	}
}

func sequenceTroubles() (conditions []string) {
	for _, trouble := range batchhelper.Troubles() {
		conditions = append(conditions, trouble.Condition)
	}
	return conditions
}

func statusOfTrouble(condition string) metav1.ConditionStatus {
	for _, trouble := range batchhelper.Troubles() {
		if trouble.Condition == condition {
			return trouble.Status
		}
	}
	return metav1.ConditionUnknown
}

// A JobSet that waits for topology domains says so, and a suspended one has none to wait for.
func TestPlacementPendingIsAReason(t *testing.T) {
	js := builders.JobSet("a", builders.WithJobs("w", 1, 1))
	js.Status.Conditions = []metav1.Condition{{Type: jobsetv1alpha2.PlacementPending, Status: metav1.ConditionTrue, Reason: helper.ReasonNoDomain,
		Message: "of 2 domains, 2 are taken"}}
	if reason, message := helper.Reason(js); reason != helper.ReasonNoDomain || message != "of 2 domains, 2 are taken" {
		t.Errorf("%s: %s", reason, message)
	}
}
