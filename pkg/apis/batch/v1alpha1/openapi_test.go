// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	generated "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
)

// models is how the definitions of the group are called; generated SDKs derive their names from it.
const models = "io.jobset-apiserver.batch.v1alpha1."

// published builds the definitions that the server publishes for the kinds that are stored, with all that they refer to.
func published(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	out, err := builder3.BuildOpenAPIDefinitionsForResources(&common.OpenAPIV3Config{
		GetDefinitions:    generated.GetOpenAPIDefinitions,
		GetDefinitionName: openapi.NewDefinitionNamer(scheme).GetDefinitionName,
	}, models+"SequentialJob", models+"SequentialJobList", models+"PodReadinessGroup", models+"PodReadinessGroupList")
	if err != nil {
		t.Fatalf("building the definitions: %v", err)
	}
	return out
}

func TestDefinitions(t *testing.T) {
	definitions := published(t)
	var got []string
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		short, ours := strings.CutPrefix(name, models)
		if !ours {
			continue
		}
		got = append(got, short)
		for field, schema := range definitions[name].Properties {
			if schema.Description == "" {
				t.Errorf("%s.%s is not described", short, field)
			}
		}
	}
	want := []string{
		"JobSetTemplateSpec", "PodReadinessGroup", "PodReadinessGroupList", "PodReadinessGroupSpec", "PodReadinessGroupStatus", "SequentialJob",
		"SequentialJobLastAction", "SequentialJobList", "SequentialJobProgress", "SequentialJobSpec", "SequentialJobState", "SequentialJobStatus",
		"SequentialJobStep", "SequentialJobStepStatus", "SequentialJobUpdateStrategy",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	for _, kind := range []string{"SequentialJob", "SequentialJobList", "PodReadinessGroup", "PodReadinessGroupList"} {
		want := []any{map[string]any{"group": "batch.jobset-apiserver.io", "version": "v1alpha1", "kind": kind}}
		if diff := cmp.Diff(any(want), definitions[models+kind].Extensions["x-kubernetes-group-version-kind"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// Server-side apply and strategic merge patch depend on the types of lists.
func TestListsHaveTheirTypes(t *testing.T) {
	definitions := published(t)
	for path, want := range map[string]string{
		"SequentialJobSpec.containers":           "atomic []",
		"SequentialJobSpec.steps":                "map [name] merge name",
		"SequentialJobStatus.conditions":         "map [type] merge type",
		"SequentialJobStatus.steps":              "atomic []",
		"SequentialJobProgress.completedIndices": "atomic []",
		"PodReadinessGroupStatus.conditions":     "map [type] merge type",
	} {
		kind, name, _ := strings.Cut(path, ".")
		schema := definitions[models+kind].Properties[name]
		keys, _ := schema.Extensions["x-kubernetes-list-map-keys"].([]any)
		got := fmt.Sprintf("%v %v", schema.Extensions["x-kubernetes-list-type"], keys)
		if merge, ok := schema.Extensions["x-kubernetes-patch-strategy"]; ok {
			got += fmt.Sprintf(" %v %v", merge, schema.Extensions["x-kubernetes-patch-merge-key"])
		}
		if got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestBoundsArePublished(t *testing.T) {
	definitions := published(t)
	property := func(kind, name string) spec.Schema { return definitions[models+kind].Properties[name] }
	for _, name := range []string{"containers", "steps"} {
		if limit := property("SequentialJobSpec", name).MaxItems; limit == nil || *limit != 100 {
			t.Errorf("maxItems of %s is %v, want 100", name, limit)
		}
	}
	for name, want := range map[string]float64{"backoffLimit": 0, "activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 0} {
		if limit := property("SequentialJobSpec", name).Minimum; limit == nil || *limit != want {
			t.Errorf("minimum of %s is %v, want %v", name, limit, want)
		}
	}
	if diff := cmp.Diff([]any{"Continue", "Forbid", "Restart"}, property("SequentialJobUpdateStrategy", "type").Enum); diff != "" {
		t.Errorf("strategies (-want +got):\n%s", diff)
	}
}
