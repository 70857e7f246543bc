// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// TestTransform shows what the cache keeps.
func TestTransform(t *testing.T) {
	condition := func(name string) map[string]any {
		return map[string]any{"type": name, "status": "True", "reason": "Because", "message": "words", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	w := workload("job-etl-0", "child", func(object map[string]any) {
		object["status"] = map[string]any{
			"conditions": []any{condition("PodsReady"), condition("Admitted")},
			"admission":  map[string]any{"clusterQueue": "all"},
		}
	})
	kept, err := transform(w.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	got := kept.(*plan.Workload)
	diff(t, "owner", types.UID("child"), got.OwnerUID())
	if len(got.Labels) != 0 || len(got.Spec.PodSets) != 0 || got.Status.Admission != nil || len(got.Status.Conditions) != 1 || !got.Is(plan.ConditionAdmitted) {
		t.Errorf("kept %+v", got)
	}
	again, err := transform(got)
	if err != nil || again != kept {
		t.Errorf("its own result became %v, error %v", again, err)
	}

	w = workload("sequentialjob-etl", "sequence", func(object map[string]any) {
		object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
			"apiVersion": "batch.jobset-apiserver.io/v1alpha1", "kind": "SequentialJob", "name": "etl", "uid": "sequence", "controller": true,
		}}
		object["status"] = map[string]any{"admission": map[string]any{"clusterQueue": "all"}}
	})
	kept, err = transform(w.DeepCopy())
	if got := kept.(*plan.Workload); err != nil || len(got.Spec.PodSets) != 1 || got.Status.Admission == nil {
		t.Errorf("kept %+v of the Workload of a sequence, error %v", got, err)
	}

	w.Object["spec"] = map[string]any{"podSets": "many"}
	kept, err = transform(w.DeepCopy())
	if got := kept.(*plan.Workload); err != nil || got.Name != w.GetName() || got.OwnerUID() != "sequence" {
		t.Errorf("kept %+v of a Workload that cannot be read, error %v", got, err)
	}
}
