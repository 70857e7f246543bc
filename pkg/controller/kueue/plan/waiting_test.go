// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestWaiting(t *testing.T) {
	reserved := condition(ConditionQuotaReserved, metav1.ConditionTrue, "QuotaReserved", "Quota reserved in ClusterQueue all")
	for name, test := range map[string]struct {
		active     *bool
		conditions []metav1.Condition
		checks     []AdmissionCheckState
		want       string
	}{
		"a new Workload": {want: "Kueue has not looked at Workload w yet"},
		"no quota": {
			conditions: []metav1.Condition{condition(ConditionQuotaReserved, metav1.ConditionFalse, "Pending", "couldn't assign flavors to pod set main: insufficient quota for cpu.\n")},
			want:       "couldn't assign flavors to pod set main: insufficient quota for cpu",
		},
		"an open admission check": {
			conditions: []metav1.Condition{reserved},
			checks:     []AdmissionCheckState{{Name: "budget", State: "Ready"}, {Name: "nodes", State: "Pending", Message: "waits for nodes"}},
			want:       "quota is reserved, admission checks are not ready: nodes is Pending (waits for nodes)",
		},
		"admitted": {conditions: []metav1.Condition{reserved, condition(ConditionAdmitted, metav1.ConditionTrue, "Admitted", "")}},
		"evicted": {
			conditions: []metav1.Condition{
				reserved, condition(ConditionAdmitted, metav1.ConditionTrue, "Admitted", ""), condition(ConditionEvicted, metav1.ConditionTrue, "Preempted", "Preempted to accommodate another one"),
			},
			want: "evicted (Preempted): Preempted to accommodate another one",
		},
		"in its queue again after an eviction": {
			conditions: []metav1.Condition{
				condition(ConditionQuotaReserved, metav1.ConditionFalse, "Pending", "insufficient quota"), condition(ConditionEvicted, metav1.ConditionTrue, "Preempted", "Preempted"),
			},
			want: "insufficient quota (evicted before: Preempted)",
		},
		"deactivated": {
			active: ptr.To(false), conditions: []metav1.Condition{condition(ConditionEvicted, metav1.ConditionTrue, "Deactivated", "The workload is deactivated")},
			want: "Workload w is deactivated: The workload is deactivated",
		},
		"finished": {conditions: []metav1.Condition{condition(ConditionFinished, metav1.ConditionTrue, "Succeeded", "")}},
		"a long message": {
			conditions: []metav1.Condition{condition(ConditionQuotaReserved, metav1.ConditionFalse, "Pending", strings.Repeat("é", maxMessage))},
			want:       strings.Repeat("é", (maxMessage-3)/2) + "...",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Workload{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Spec: WorkloadSpec{QueueName: "team", Active: test.active}}
			w.Status.Conditions, w.Status.AdmissionChecks = test.conditions, test.checks
			if got := Waiting(w); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}
