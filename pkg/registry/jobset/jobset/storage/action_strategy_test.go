// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	registry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func TestActionsChangeSuspendAndStatusOnly(t *testing.T) {
	s := registry.NewActionStrategy(registry.NewStrategy(nil, gates.Gates{}, nil))
	prev := builders.Hub("train", builders.WithHubJobs("workers", 2, 4))
	prev.Generation, prev.Labels = 3, map[string]string{"a": "b"}
	cases := map[string]struct {
		suspend        *bool
		wantGeneration int64
	}{
		"suspend is changed":   {suspend: ptr.To(true), wantGeneration: 4},
		"suspend stays absent": {wantGeneration: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next := builders.Hub("other", builders.WithHubJobs("more", 9, 9))
			next.Spec.Suspend, next.Generation = tc.suspend, 9
			next.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
			next.Status.Restarts = 1
			want := prev.DeepCopy()
			want.Spec.Suspend, want.Generation, want.Status.Restarts = tc.suspend, tc.wantGeneration, 1
			s.PrepareForUpdate(context.Background(), next, prev)
			if diff := cmp.Diff(want, next); diff != "" {
				t.Errorf("the set (-want +got):\n%s", diff)
			}
			if errs := s.ValidateUpdate(context.Background(), next, prev); len(errs) > 0 {
				t.Errorf("refused: %v", errs.ToAggregate())
			}
			if warnings := s.WarningsOnUpdate(context.Background(), next, prev); len(warnings) > 0 {
				t.Errorf("warned: %v", warnings)
			}
		})
	}
}

func TestActionsWriteValidStatusesOnly(t *testing.T) {
	prev := builders.Hub("train", builders.WithHubJobs("workers", 2, 4))
	next := prev.DeepCopy()
	next.Status.Attempts = make([]jobset.Attempt, 11)
	if errs := registry.NewActionStrategy(registry.NewStrategy(nil, gates.Gates{}, nil)).ValidateUpdate(context.Background(), next, prev); len(errs) == 0 {
		t.Error("eleven attempts without numbers are accepted")
	}
}

func TestCallsCarryTheGates(t *testing.T) {
	on := gates.Gates{JobSetActiveDeadlineSeconds: true}
	want := actions.Call{User: "alice", Now: time.Unix(1, 0), Gates: on}
	if got := registry.NewActionStrategy(registry.NewStrategy(nil, on, nil)).Call("alice", time.Unix(1, 0)); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
