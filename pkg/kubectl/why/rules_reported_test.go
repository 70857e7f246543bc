// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	batchhelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	dshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

// reasonsOfTroubles are reasons with which objects have conditions; QuotaExceeded for those that are not listed.
var reasonsOfTroubles = map[string]string{
	namespaceuid.Condition: namespaceuid.ReasonOlderThanNamespace, jobsetv1alpha2.Held: reasons.RestoredFromBackup,
	jobsetv1alpha2.ChildNameConflict: reasons.NameConflict, jobsetv1alpha2.PlacementPending: helper.ReasonNoDomain,
	jobsetv1alpha2.PodsUnschedulable: reasons.Unschedulable, batchv1alpha1.ConditionAvailable: reasons.UndoneByOthers,
}

// TestTroublesAreExplained: what keeps an object from running is explained also if pods and events do not show it, by its condition.
func TestTroublesAreExplained(t *testing.T) {
	explains := func(kind, condition string, r *Report) {
		t.Helper()
		first := r.Findings[0]
		if first.Cause.Normal() || first.Cause == CauseUnknown {
			t.Errorf("%s with %s: %s: %s", kind, condition, first.Cause, first.Summary)
		}
		if !slices.ContainsFunc(first.Evidence, func(f Fact) bool { return strings.Contains(f.Text, "condition "+condition) }) {
			t.Errorf("%s with %s: the evidence of %s is %v", kind, condition, first.Cause, first.Evidence)
		}
	}
	reason := func(condition string) string {
		if r, listed := reasonsOfTroubles[condition]; listed {
			return r
		}
		return reasons.QuotaExceeded
	}
	for _, condition := range helper.Troubles() {
		explains("JobSet", condition, Diagnose(healthy(without, has(condition, reason(condition), "the message"))))
	}
	for _, condition := range lwshelper.Troubles() {
		if condition == leaderworkersetv1.ConditionFailed {
			continue // a phase of its own, with its own rules
		}
		c := runningLeaderWorkerSet()
		lacksGroup(c)
		says(condition, reason(condition), "the message")(c)
		explains("LeaderWorkerSet", condition, diagnoseLeaderWorkerSet(c.evidence()))
	}
	for _, condition := range dshelper.Troubles() {
		c := runningRoles()
		lacksRole(c)
		c.RolesSet.Status.Conditions = append(c.RolesSet.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: reason(condition), Message: "the message"})
		explains("DisaggregatedSet", condition, diagnoseRoles(c.evidence()))
	}
	for _, trouble := range batchhelper.Troubles() {
		e, message := runningSequence(), "pods of job 0 cannot be created: the message"
		if trouble.Condition == batchv1alpha1.ConditionFailed {
			reasonsOfTroubles[trouble.Condition] = batchv1alpha1.ReasonReconciliationError
		}
		starting(func(*corev1.Pod) {})(e)
		tells(trouble.Condition, trouble.Status, reason(trouble.Condition), message)(e)
		explains("SequentialJob", trouble.Condition, diagnoseSequence(e))
	}
}
