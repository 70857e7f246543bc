// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

func TestActivation(t *testing.T) {
	inactive := func(w *Workload) { w.Spec.Active = ptr.To(false) }
	deactivated := func(w *Workload) {
		inactive(w)
		w.Annotations = map[string]string{batchv1alpha1.DeactivatedByKey: "etl"}
	}
	for name, test := range map[string]struct {
		workload          func(*Workload)
		suspended, remain Activation
	}{
		"active":                  {func(*Workload) {}, Deactivate, Keep},
		"deactivated by us":       {deactivated, Keep, Activate},
		"deactivated by somebody": {inactive, Keep, Keep},
		"activated by somebody":   {func(w *Workload) { deactivated(w); w.Spec.Active = ptr.To(true) }, Deactivate, Keep},
		"finished": {func(w *Workload) {
			w.Status.Conditions = []metav1.Condition{condition(ConditionFinished, metav1.ConditionTrue, "Succeeded", "")}
		}, Keep, Keep},
		"being deleted": {func(w *Workload) { deactivated(w); w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, Keep, Keep},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Workload{}
			test.workload(w)
			if got := ActivationOf(w, true); got != test.suspended {
				t.Errorf("suspended: %v, want %v", got, test.suspended)
			}
			if got := ActivationOf(w, false); got != test.remain {
				t.Errorf("not suspended: %v, want %v", got, test.remain)
			}
		})
	}
	if ActivationOf(nil, true) != Keep {
		t.Error("a change of no Workload")
	}
}
