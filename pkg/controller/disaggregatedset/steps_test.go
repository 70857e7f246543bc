// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
)

// TestStepsDifferInMoreThanTheirNotes reports passes that all meet the same version of a set. Of events that differ only in their notes, the
// API keeps the first one.
func TestStepsDifferInMoreThanTheirNotes(t *testing.T) {
	r := newRig(t, newSet("prefill=4", "decode=External"))
	ds, seen := r.set(t), map[string]string{}
	report := func(p plan.Plan, results plan.Results) {
		t.Helper()
		obs := &plan.Observed{Set: ds, Now: metav1.Now()}
		for _, e := range r.Conclude(obs, p, plan.Finish(*obs, p, results)).Events {
			key := fmt.Sprint(e.Type, e.Reason, e.Action, e.Related)
			if earlier, found := seen[key]; found || e.Related == nil {
				t.Errorf("%q is folded into %q", e.Note, earlier)
			}
			seen[key] = e.Note
		}
	}
	for step, version := range []string{"5", "8", "11"} {
		from := int32(4 - step) //nolint:gosec // a small number
		scaling := plan.Scaling{Ref: plan.Ref{Name: "llm-0-a-prefill", UID: "u"}, ResourceVersion: version, Role: "prefill", From: from, To: from - 1}
		report(plan.Plan{Slices: []plan.SlicePlan{{Scale: []plan.Scaling{scaling}}}},
			plan.Results{Slices: []plan.SliceResult{{Done: true, Scaled: []int{0}}}})
	}
	scaler := func(role string) *disaggregatedsetv1.DisaggregatedSetRoleScaler {
		return &disaggregatedsetv1.DisaggregatedSetRoleScaler{ObjectMeta: metav1.ObjectMeta{Name: "llm-" + role}}
	}
	report(plan.Plan{
		CreateScalers: []*disaggregatedsetv1.DisaggregatedSetRoleScaler{scaler("a"), scaler("b")},
		DeleteScalers: []plan.Ref{{Name: "llm-c"}, {Name: "llm-d"}}, Conflicts: []string{"llm-e", "llm-f"},
	}, plan.Results{CreatedScalers: []int{0, 1}, DeletedScalers: []int{0, 1}})
	if len(seen) != 9 {
		t.Errorf("%d events, want 9: %q", len(seen), seen)
	}
}
