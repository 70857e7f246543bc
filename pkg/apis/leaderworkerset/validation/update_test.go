// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
)

// TestUpdates has the rows of upstream's matrix that are about updates.
func TestUpdates(t *testing.T) {
	two, three := template("subGroupPolicy: {subGroupSize: 2}"), template("subGroupPolicy: {subGroupSize: 3}")
	for name, tc := range map[string]struct {
		old, next string
		want      []string
	}{
		"size":                          {next: template("size: 2")},
		"templates":                     {next: template("leaderTemplate: {spec: {containers: [{name: a}]}}, workerTemplate: {spec: {containers: [{name: b}]}}")},
		"replicas":                      {next: "spec: {replicas: 9}"},
		"partition":                     {next: rolling("partition: 2")},
		"restartPolicy":                 {next: template("restartPolicy: None")},
		"Shared to UniquePerReplica":    {next: "spec: {networkConfig: {subdomainPolicy: UniquePerReplica}}"},
		"UniquePerReplica to Shared":    {old: "spec: {networkConfig: {subdomainPolicy: UniquePerReplica}}"},
		"subdomainPolicy to null":       {old: "spec: {networkConfig: {subdomainPolicy: UniquePerReplica}}", next: "spec: {networkConfig: {}}"},
		"claims":                        {next: template("volumeClaimTemplates: [{metadata: {name: a}}], persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}")},
		"subGroupPolicyType":            {old: template("size: 1, subGroupPolicy: {subGroupSize: 1}"), next: template("size: 1, subGroupPolicy: {subGroupSize: 1, subGroupPolicyType: LeaderExcluded}")},
		"subGroupSize stays":            {old: two, next: two},
		"subGroupSize 2 to 3":           {two, three, invalid(subSizePath)},
		"a policy is added":             {"", two, invalid(subSizePath)},
		"a policy is removed":           {two, "", invalid(subSizePath)},
		"subGroupSize is removed":       {two, template("subGroupPolicy: {}"), append(invalid(subSizePath), required(subSizePath)...)},
		"size leaves the subgroups":     {two, template("size: 7, subGroupPolicy: {subGroupSize: 4}"), invalid(subSizePath, subSizePath)},
		"replicas -1":                   {"", "spec: {replicas: -1}", invalid("spec.replicas")},
		"replicas 1000001":              {"", "spec: {replicas: 1000001}", invalid("spec.replicas")},
		"the product is too high":       {"", "spec: {replicas: 1000000, leaderWorkerTemplate: {size: 3000}}", invalid("spec.replicas")},
		"startupPolicy":                 {"", "spec: {startupPolicy: x}", unsupported("spec.startupPolicy")},
		"what a scale has left stays":   {old: "spec: {replicas: 5, rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 10%}}}", next: "spec: {replicas: 5, startupPolicy: LeaderReady, rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 10%}}}"},
		"what a scale has left is kept": {"spec: {replicas: 5, rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 10%}}}", "spec: {replicas: 4, rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 10%}}}", invalid(maxPath)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, kinds(validation.ValidateLeaderWorkerSetUpdate(merged(t, tc.next), merged(t, tc.old)))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScaleChecksTheRangeOnly(t *testing.T) {
	for patch, want := range map[string][]string{
		"spec: {replicas: 0}":       nil,
		"spec: {replicas: 1000000}": nil,
		"spec: {replicas: 1000000, leaderWorkerTemplate: {size: 3000}}":                             nil,
		"spec: {replicas: 5, rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 10%}}}": nil,
		"spec: {replicas: -1}":      invalid("spec.replicas"),
		"spec: {replicas: 1000001}": invalid("spec.replicas"),
	} {
		if diff := cmp.Diff(want, kinds(validation.ValidateLeaderWorkerSetScale(merged(t, patch)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", patch, diff)
		}
	}
}

func TestListsAreBounded(t *testing.T) {
	huge := func(n int) *leaderworkerset.LeaderWorkerSet {
		set := merged(t, "")
		containers := make([]corev1.Container, 11)
		for i := range containers {
			containers[i].Env = make([]corev1.EnvVar, n/len(containers))
		}
		set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers = containers
		return set
	}
	if diff := cmp.Diff(invalid("spec"), kinds(validation.ValidateLeaderWorkerSetCreate(huge(validation.MaxObjects)))); diff != "" {
		t.Errorf("create (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(invalid("spec"), kinds(validation.ValidateLeaderWorkerSetUpdate(huge(validation.MaxObjects), merged(t, "")))); diff != "" {
		t.Errorf("update (-want +got):\n%s", diff)
	}
	if errs := validation.ValidateLeaderWorkerSetUpdate(huge(validation.MaxObjects), huge(validation.MaxObjects+1)); len(errs) > 0 && errs[0].Field == "spec" {
		t.Errorf("a list that became shorter is refused: %v", errs)
	}
	long := func(n int) *leaderworkerset.LeaderWorkerSet {
		set := merged(t, "")
		set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Env = make([]corev1.EnvVar, n)
		return set
	}
	want := []string{"FieldValueTooMany spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].env"}
	if diff := cmp.Diff(want, kinds(validation.ValidateLeaderWorkerSetCreate(long(generic.MaxItems+1)))); diff != "" {
		t.Errorf("create with a long list (-want +got):\n%s", diff)
	}
	if errs := validation.ValidateLeaderWorkerSetUpdate(long(generic.MaxItems+1), long(generic.MaxItems+2)); len(errs) > 0 && errs[0].Type == field.ErrorTypeTooMany {
		t.Errorf("a long list that became shorter is refused: %v", errs[0])
	}
}
