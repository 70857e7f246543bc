// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

// TestFinishedSetsHaveNoTroubles: what kept a set from running ends when the set finishes, and its beginning is worth a warning. A set that
// is older than its namespace does not finish.
func TestFinishedSetsHaveNoTroubles(t *testing.T) {
	js := &jobsetv1alpha2.JobSet{}
	for _, condition := range helper.Troubles() {
		if condition == namespaceuid.Condition {
			continue
		}
		c := metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Before"}
		begun := newDraft(state{Observed: Observed{JobSet: &jobsetv1alpha2.JobSet{}}}).with(now, reports(hostplan.Trouble{Type: c.Type, Reason: c.Reason}))
		if len(begun.events) != 1 || begun.events[0].Type != corev1.EventTypeWarning {
			t.Errorf("the beginning of %s is no warning", condition)
		}
		js.Status.Conditions = append(js.Status.Conditions, c)
	}
	d := newDraft(state{Observed: Observed{JobSet: js}}).
		with(metav1.NewTime(time.Unix(1e9, 0)), reports(troublesOver("JobSetCompleted", "jobset completed successfully")...))
	for _, c := range d.next.Conditions {
		if c.Status != metav1.ConditionFalse {
			t.Errorf("%s is %s after the end", c.Type, c.Status)
		}
	}
}
