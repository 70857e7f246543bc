// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/google/go-cmp/cmp"

	generated "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
)

const (
	// models is how the definitions of the group are called; generated SDKs derive their names from it.
	models = "io.x-k8s.jobset.v1alpha2."
	refs   = "#/components/schemas/"
)

// published builds the definitions that the server publishes for JobSets, with all that they refer to.
func published(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	scheme, _ := newScheme()
	out, err := builder3.BuildOpenAPIDefinitionsForResources(&common.OpenAPIV3Config{
		GetDefinitions:    generated.GetOpenAPIDefinitions,
		GetDefinitionName: openapi.NewDefinitionNamer(scheme).GetDefinitionName,
	}, models+"JobSet", models+"JobSetList")
	if err != nil {
		t.Fatalf("building the definitions: %v", err)
	}
	return out
}

func TestDefinitionsHaveTheNamesOfThePublishedSchema(t *testing.T) {
	var got []string
	for _, name := range slices.Sorted(maps.Keys(published(t))) {
		if short, ours := strings.CutPrefix(name, models); ours {
			got = append(got, short)
		} else if !strings.HasPrefix(name, "io.k8s.") {
			t.Errorf("definition %s is neither ours nor of Kubernetes", name)
		}
	}
	want := []string{
		"AllDisruptionMode", "Attempt", "AvoidedNode", "BasicSchedulingPolicy", "Checkpoint", "Coordinator", "DependsOn", "DisruptionMode", "FailureCause", "FailurePolicy", "FailurePolicyRule",
		"GangSchedulingPolicy", "JobMoves", "JobPlacement", "JobScheduling", "JobSet", "JobSetList", "JobSetSchedulingConfiguration", "JobSetSpec", "JobSetStatus", "Network",
		"Placement", "ReplicatedJob", "ReplicatedJobPlacement", "ReplicatedJobScheduling", "ReplicatedJobStatus", "SchedulingConstraints", "SchedulingPolicy", "SchedulingResourceClaim",
		"SingleDisruptionMode", "StartupPolicy", "SuccessPolicy", "TopologyConstraint", "VolumeClaimPolicy", "VolumeRetentionPolicy",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
}

func TestKindsCarryTheirGroupAndVersion(t *testing.T) {
	definitions := published(t)
	for _, kind := range []string{"JobSet", "JobSetList"} {
		want := []any{map[string]any{"group": "jobset.x-k8s.io", "version": "v1alpha2", "kind": kind}}
		if diff := cmp.Diff(any(want), definitions[models+kind].Extensions["x-kubernetes-group-version-kind"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// `kubectl explain --recursive` shows these texts, of our fields and of those of the templates.
func TestEveryFieldIsDescribed(t *testing.T) {
	definitions := published(t)
	fields, queue, seen := 0, []string{models + "JobSet", models + "JobSetList"}, map[string]bool{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		definition, ok := definitions[name]
		if !ok {
			t.Fatalf("definition %s is referred to and missing", name)
		}
		if strings.HasPrefix(name, models) && definition.Description == "" {
			t.Errorf("%s has no description", name)
		}
		for _, field := range slices.Sorted(maps.Keys(definition.Properties)) {
			property := definition.Properties[field]
			fields++
			if property.Description == "" {
				t.Errorf("%s.%s has no description", name, field)
			}
			queue = append(queue, referred(property)...)
		}
	}
	if fields < 500 {
		t.Errorf("only %d fields were found: the walk does not reach the templates", fields)
	}
}

// referred lists the definitions that a schema names, at any depth within itself.
func referred(schema spec.Schema) []string {
	var out []string
	if name, ok := strings.CutPrefix(schema.Ref.String(), refs); ok {
		out = append(out, name)
	}
	for _, part := range schema.AllOf {
		out = append(out, referred(part)...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		out = append(out, referred(*schema.Items.Schema)...)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		out = append(out, referred(*schema.AdditionalProperties.Schema)...)
	}
	return out
}

// Lists by their type, which server-side apply and strategic-merge patches follow (docs/reference/jobset.md#list-types).
func TestListsMergeAsSpecified(t *testing.T) {
	want := map[string]string{
		"JobSetList.items":                               "unstated",
		"JobSetSpec.replicatedJobs":                      "map by name, merged by name",
		"JobSetSpec.volumeClaimPolicies":                 "atomic",
		"ReplicatedJob.dependsOn":                        "map by name, merged by name",
		"SuccessPolicy.targetReplicatedJobs":             "atomic",
		"FailurePolicy.rules":                            "atomic",
		"FailurePolicyRule.onJobFailureReasons":          "atomic",
		"FailurePolicyRule.onJobFailureMessagePatterns":  "atomic",
		"FailurePolicyRule.targetReplicatedJobs":         "atomic",
		"VolumeClaimPolicy.templates":                    "atomic",
		"JobSetStatus.conditions":                        "map by type, merged by type",
		"JobSetStatus.replicatedJobsStatus":              "map by name, merged by name",
		"Placement.replicatedJobs":                       "map by name",
		"ReplicatedJobPlacement.jobs":                    "atomic",
		"JobMoves.left":                                  "atomic",
		"JobSetStatus.attempts":                          "map by number, merged by number",
		"Attempt.avoidedNodes":                           "map by name",
		"JobSetSchedulingConfiguration.replicatedJobs":   "atomic",
		"ReplicatedJobScheduling.targetReplicatedJobs":   "set",
		"ReplicatedJobScheduling.resourceClaims":         "map by name",
		"JobScheduling.resourceClaims":                   "map by name",
		"SchedulingConstraints.topology":                 "atomic",
		"ReplicatedJobStatus.jobRestarts":                "atomic",
		"ReplicatedJobStatus.jobRestartsCountTowardsMax": "atomic",
	}
	got := ours(t, func(s spec.Schema) string {
		if !s.Type.Contains("array") {
			return ""
		}
		kind, ok := s.Extensions["x-kubernetes-list-type"].(string)
		if !ok {
			return "unstated"
		}
		if keys, ok := s.Extensions["x-kubernetes-list-map-keys"].([]any); ok {
			kind += fmt.Sprintf(" by %v", keys[0])
		}
		if s.Extensions["x-kubernetes-patch-strategy"] == "merge" {
			kind += fmt.Sprintf(", merged by %v", s.Extensions["x-kubernetes-patch-merge-key"])
		}
		return kind
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("list types (-want +got):\n%s", diff)
	}
}

func TestEnumsAreComplete(t *testing.T) {
	want := map[string]string{
		"DependsOn.status":                  "[Complete Ready]",
		"SuccessPolicy.operator":            "[All Any]",
		"FailurePolicy.restartStrategy":     "[BlockingRecreate InPlaceRestart Recreate]",
		"FailurePolicyRule.action":          "[FailJobSet RestartJob RestartJobAndIgnoreMaxRestarts RestartJobSet RestartJobSetAndIgnoreMaxRestarts]",
		"StartupPolicy.startupPolicyOrder":  "[AnyOrder InOrder]",
		"VolumeRetentionPolicy.whenDeleted": "[Delete Retain]",
		"Attempt.trigger":                   "[FailurePolicy Preemption Requested Resume Retry Start]",
		"Attempt.scope":                     "[Job JobSet ReplicatedJob]",
		"Attempt.outcome":                   "[Cancelled Completed Failed Restarted Suspended]",
	}
	got := ours(t, func(s spec.Schema) string {
		if len(s.Enum) == 0 {
			return ""
		}
		return fmt.Sprint(s.Enum)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("enums (-want +got):\n%s", diff)
	}
}

func TestLimitsAndDefaultsAreStated(t *testing.T) {
	want := map[string]string{
		"JobSetSpec.ttlSecondsAfterFinished":             "minimum 0",
		"JobSetSpec.volumeClaimPolicies":                 "at most 50 items",
		"JobSetSpec.activeDeadlineSeconds":               "minimum 1",
		"JobSetSchedulingConfiguration.replicatedJobs":   "at most 50 items",
		"ReplicatedJobScheduling.targetReplicatedJobs":   "at most 50 items",
		"ReplicatedJobScheduling.resourceClaims":         "at most 4 items",
		"JobScheduling.resourceClaims":                   "at most 4 items",
		"SchedulingConstraints.topology":                 "at most 1 items",
		"GangSchedulingPolicy.minCount":                  "minimum 1",
		"ReplicatedJob.replicas":                         "minimum 0, default 1",
		"ReplicatedJob.groupName":                        "default default",
		"ReplicatedJob.dependsOn":                        "at most 5 items",
		"FailurePolicy.restartStrategy":                  "default Recreate",
		"VolumeRetentionPolicy.whenDeleted":              "default Delete",
		"VolumeClaimPolicy.templates":                    "at most 50 items",
		"JobSetStatus.previousInPlaceRestartAttempt":     "minimum 0",
		"Placement.restarts":                             "minimum 0",
		"JobPlacement.nodes":                             "minimum 0",
		"JobPlacement.restarts":                          "minimum 0",
		"JobMoves.left":                                  "at most 8 items",
		"JobSetStatus.currentInPlaceRestartAttempt":      "minimum 0",
		"JobSetStatus.executionAttempts":                 "minimum 0",
		"JobSetStatus.attempts":                          "at most 10 items",
		"JobSetStatus.readyMilliseconds":                 "minimum 0",
		"JobSetStatus.addedRestarts":                     "minimum 0",
		"JobSetStatus.goodMilliseconds":                  "minimum 0",
		"Checkpoint.step":                                "minimum 0",
		"Checkpoint.goodMilliseconds":                    "minimum 0",
		"Attempt.avoidedNodes":                           "at most 32 items",
		"AvoidedNode.attempt":                            "minimum 1",
		"ReplicatedJobStatus.jobRestarts":                "at most 1024 items",
		"ReplicatedJobStatus.jobRestartsCountTowardsMax": "at most 1024 items",
	}
	got := ours(t, func(s spec.Schema) string {
		var out []string
		if s.Minimum != nil {
			out = append(out, fmt.Sprintf("minimum %v", *s.Minimum))
		}
		if s.MaxItems != nil {
			out = append(out, fmt.Sprintf("at most %d items", *s.MaxItems))
		}
		// The generator states zero values as defaults of whatever has no pointer; these are not ours.
		switch text := fmt.Sprint(s.Default); text {
		case "<nil>", "", "0", "map[]":
		default:
			out = append(out, "default "+text)
		}
		return strings.Join(out, ", ")
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits and defaults (-want +got):\n%s", diff)
	}
}

func TestFormatsOfNumbers(t *testing.T) {
	want := map[string]string{
		"JobSetSpec.ttlSecondsAfterFinished":         "int32",
		"JobSetSpec.activeDeadlineSeconds":           "int64",
		"GangSchedulingPolicy.minCount":              "int32",
		"ReplicatedJob.replicas":                     "int32",
		"FailurePolicy.maxRestarts":                  "int32",
		"Coordinator.jobIndex":                       "int32",
		"Coordinator.podIndex":                       "int32",
		"JobSetStatus.restarts":                      "int32",
		"Placement.restarts":                         "int32",
		"ReplicatedJobPlacement.priority":            "int32",
		"JobPlacement.nodes":                         "int32",
		"JobPlacement.restarts":                      "int32",
		"JobSetStatus.restartsCountTowardsMax":       "int32",
		"JobSetStatus.previousInPlaceRestartAttempt": "int32",
		"JobSetStatus.currentInPlaceRestartAttempt":  "int32",
		"JobSetStatus.executionAttempts":             "int32",
		"JobSetStatus.readyMilliseconds":             "int64",
		"JobSetStatus.addedRestarts":                 "int32",
		"JobSetStatus.goodMilliseconds":              "int64",
		"Checkpoint.step":                            "int64",
		"Checkpoint.goodMilliseconds":                "int64",
		"Attempt.number":                             "int32",
		"Attempt.jobIndex":                           "int32",
		"AvoidedNode.attempt":                        "int32",
		"FailureCause.exitCode":                      "int32",
		"FailureCause.signal":                        "int32",
		"ReplicatedJobStatus.ready":                  "int32",
		"ReplicatedJobStatus.succeeded":              "int32",
		"ReplicatedJobStatus.failed":                 "int32",
		"ReplicatedJobStatus.active":                 "int32",
		"ReplicatedJobStatus.suspended":              "int32",
	}
	got := ours(t, func(s spec.Schema) string { return s.Format })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("formats (-want +got):\n%s", diff)
	}
}
