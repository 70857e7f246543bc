// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

func TestSetActive(t *testing.T) {
	known := &plan.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job-etl-0", UID: "u", ResourceVersion: "7"}}
	for name, test := range map[string]struct {
		activation plan.Activation
		want       string
	}{
		"keep": {plan.Keep, ""},
		"deactivate": {plan.Deactivate,
			`{"metadata":{"annotations":{"batch.jobset-apiserver.io/deactivated-by":"etl"},"resourceVersion":"7","uid":"u"},"spec":{"active":false}}`},
		"activate": {plan.Activate,
			`{"metadata":{"annotations":{"batch.jobset-apiserver.io/deactivated-by":null},"resourceVersion":"7","uid":"u"},"spec":{"active":true}}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			got := ""
			client := f.Dynamic.(*dynamicfake.FakeDynamicClient)
			client.PrependReactor("patch", "workloads", func(action clienttesting.Action) (bool, runtime.Object, error) {
				got = string(action.(clienttesting.PatchAction).GetPatch())
				return true, nil, apierrors.NewNotFound(workloads.GroupResource(), "job-etl-0")
			})
			if err := f.SetActive(t.Context(), known, etl, test.activation); err != nil {
				t.Errorf("a Workload that is gone: %v", err)
			}
			diff(t, "patch", test.want, got)
		})
	}
	f := newFixture()
	f.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("patch", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(workloads.GroupResource(), "job-etl-0", nil)
	})
	if err := f.SetActive(t.Context(), known, etl, plan.Activate); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
}

// TestActivationChangedByOthers has another party change spec.active of the Workload of a child back each time.
func TestActivationChangedByOthers(t *testing.T) {
	known := &plan.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job-etl-0", UID: "u", ResourceVersion: "7"}}
	for name, test := range map[string]struct {
		activations []plan.Activation
		want        int
	}{
		"a suspended sequence":                  {[]plan.Activation{plan.Deactivate}, 5},
		"one that runs":                         {[]plan.Activation{plan.Activate}, 5},
		"one that is suspended and resumed":     {[]plan.Activation{plan.Deactivate, plan.Activate}, 300},
		"one whose Workload is as it should be": {[]plan.Activation{plan.Keep}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, made := newFixture(), 0
			f.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("patch", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) {
				made++
				return true, workload("w", "owner"), nil
			})
			for second := range 300 {
				_ = f.SetActive(t.Context(), known, etl, test.activations[second%len(test.activations)]) // counted
				f.clock.SetTime(f.clock.Now().Add(time.Second))
			}
			diff(t, "how often the Workload is changed in five minutes", test.want, made)
		})
	}
}
