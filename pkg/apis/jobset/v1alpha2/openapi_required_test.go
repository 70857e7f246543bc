// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2_test

import (
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/google/go-cmp/cmp"
)

func TestRequiredFields(t *testing.T) {
	want := map[string][]string{
		"JobSetList":              {"items"},
		"ReplicatedJob":           {"name", "template"},
		"DependsOn":               {"name", "status"},
		"SuccessPolicy":           {"operator"},
		"FailurePolicyRule":       {"name", "action"},
		"StartupPolicy":           {"startupPolicyOrder"},
		"Coordinator":             {"replicatedJob"},
		"ReplicatedJobPlacement":  {"name", "topologyKey"},
		"ReplicatedJobStatus":     {"name", "ready", "succeeded", "failed", "active", "suspended"},
		"Attempt":                 {"number", "trigger", "scope"},
		"AvoidedNode":             {"name", "attempt", "until"},
		"Checkpoint":              {"step"},
		"FailureCause":            {"job"},
		"ReplicatedJobScheduling": {"targetReplicatedJobs"},
		"SchedulingResourceClaim": {"name"},
		"TopologyConstraint":      {"key"},
	}
	got := map[string][]string{}
	for name, definition := range published(t) {
		if short, isOurs := strings.CutPrefix(name, models); isOurs && len(definition.Required) > 0 {
			got[short] = definition.Required
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("required fields (-want +got):\n%s", diff)
	}
}

// ours describes the fields of our own types with a function; fields that it has nothing to say of are left out.
func ours(t *testing.T, describe func(spec.Schema) string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, definition := range published(t) {
		short, isOurs := strings.CutPrefix(name, models)
		if !isOurs {
			continue
		}
		for field, property := range definition.Properties {
			if text := describe(property); text != "" {
				out[short+"."+field] = text
			}
		}
	}
	return out
}
