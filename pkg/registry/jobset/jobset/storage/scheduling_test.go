// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
	registry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
)

func scheduling(js *api.JobSet) { js.Spec.Scheduling = &api.JobSetSchedulingConfiguration{} }

func TestSchedulingDefaults(t *testing.T) {
	gang := &api.SchedulingPolicy{Gang: &api.GangSchedulingPolicy{}}
	basic := &api.SchedulingPolicy{Basic: &api.BasicSchedulingPolicy{}}
	depends := []api.ReplicatedJob{{Name: "a"}, {Name: "b", DependsOn: []api.DependsOn{{Name: "a", Status: api.DependencyReady}}}}
	entries := []api.ReplicatedJobScheduling{{TargetReplicatedJobs: []string{"a"}}}
	cases := map[string]struct {
		spec api.JobSetSpec
		want *api.JobSetSchedulingConfiguration
	}{
		"no scheduling": {},
		"no policy":     {spec: api.JobSetSpec{Scheduling: &api.JobSetSchedulingConfiguration{}}, want: &api.JobSetSchedulingConfiguration{SchedulingPolicy: gang}},
		"a policy":      {spec: api.JobSetSpec{Scheduling: &api.JobSetSchedulingConfiguration{SchedulingPolicy: basic}}, want: &api.JobSetSchedulingConfiguration{SchedulingPolicy: basic}},
		"entries":       {spec: api.JobSetSpec{Scheduling: &api.JobSetSchedulingConfiguration{ReplicatedJobs: entries}}, want: &api.JobSetSchedulingConfiguration{ReplicatedJobs: entries}},
		"InOrder": {
			spec: api.JobSetSpec{StartupPolicy: &api.StartupPolicy{StartupPolicyOrder: api.InOrder}, Scheduling: &api.JobSetSchedulingConfiguration{}},
			want: &api.JobSetSchedulingConfiguration{},
		},
		"dependsOn": {
			spec: api.JobSetSpec{ReplicatedJobs: depends, Scheduling: &api.JobSetSchedulingConfiguration{}},
			want: &api.JobSetSchedulingConfiguration{},
		},
	}
	for name, tc := range cases {
		t.Run("8.4 "+name, func(t *testing.T) {
			registry.SetCreateDefaults(&tc.spec)
			if diff := cmp.Diff(tc.want, tc.spec.Scheduling); diff != "" {
				t.Errorf("scheduling (-want +got):\n%s", diff)
			}
		})
	}
}

// A gang that would silently run without its gate is refused, however lenient the client is about fields.
func TestSchedulingIsRefusedWithoutItsGate(t *testing.T) {
	const want = "spec.scheduling: Forbidden: must not be set while the feature gate JobSetWorkloadAwareSchedulingAPI of the API server is off"
	main, _ := strategies(gates.Gates{})
	for _, directive := range []string{"", "Warn", "Ignore", "Strict"} {
		ctx := strategy.WithFieldValidation(inNamespace(), directive)
		js := plain(scheduling)
		main.PrepareForCreate(ctx, js)
		if got := fmt.Sprint(main.Validate(ctx, js).ToAggregate()); got != want {
			t.Errorf("on a create with %q: %s, want %s", directive, got, want)
		}
	}
	stored := plain(scheduling)
	if errs := main.ValidateUpdate(inNamespace(), plain(scheduling), stored); len(errs) > 0 {
		t.Errorf("a set that has it already is refused: %v", errs)
	}
}
