// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

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

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/install"
	generated "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
)

// models is how the definitions of the group are called; generated SDKs derive their names from it.
const models = "io.x-k8s.disaggregatedset.v1."

// published builds the definitions that the server publishes for the kinds that are stored, with all that they refer to.
func published(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	out, err := builder3.BuildOpenAPIDefinitionsForResources(&common.OpenAPIV3Config{
		GetDefinitions:    generated.GetOpenAPIDefinitions,
		GetDefinitionName: openapi.NewDefinitionNamer(scheme).GetDefinitionName,
	}, models+"DisaggregatedSet", models+"DisaggregatedSetList", models+"DisaggregatedSetRoleScaler", models+"DisaggregatedSetRoleScalerList")
	if err != nil {
		t.Fatalf("building the definitions: %v", err)
	}
	return out
}

// kubectl explain prints the descriptions.
func TestFieldsAreDescribed(t *testing.T) {
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
		"DisaggregatedRoleSpec", "DisaggregatedSet", "DisaggregatedSetList", "DisaggregatedSetRoleScaler", "DisaggregatedSetRoleScalerList",
		"DisaggregatedSetRoleScalerSpec", "DisaggregatedSetRoleScalerStatus", "DisaggregatedSetSpec", "DisaggregatedSetStatus", "PlacementPolicy", "RoleScaling",
		"RoleStatus",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	for _, kind := range []string{"DisaggregatedSet", "DisaggregatedSetList", "DisaggregatedSetRoleScaler", "DisaggregatedSetRoleScalerList"} {
		want := []any{map[string]any{"group": "disaggregatedset.x-k8s.io", "version": "v1", "kind": kind}}
		if diff := cmp.Diff(any(want), definitions[models+kind].Extensions["x-kubernetes-group-version-kind"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// Server-side apply depends on the types of lists.
func TestListsHaveTheirTypes(t *testing.T) {
	definitions := published(t)
	for path, want := range map[string]string{
		models + "DisaggregatedSetSpec.roles":                                   "map [name]",
		models + "DisaggregatedSetStatus.roleStatuses":                          "map [name]",
		models + "DisaggregatedSetStatus.conditions":                            "map [type]",
		models + "DisaggregatedSetRoleScalerStatus.conditions":                  "map [type]",
		"io.x-k8s.leaderworkerset.v1.LeaderWorkerTemplate.volumeClaimTemplates": "atomic []",
		"io.k8s.api.core.v1.PodSpec.containers":                                 "map [name]",
	} {
		dot := strings.LastIndex(path, ".")
		definition := definitions[path[:dot]]
		if definition == nil {
			t.Errorf("%s is not published", path[:dot])
			continue
		}
		schema := definition.Properties[path[dot+1:]]
		keys, _ := schema.Extensions["x-kubernetes-list-map-keys"].([]any)
		if got := fmt.Sprintf("%v %v", schema.Extensions["x-kubernetes-list-type"], keys); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestChoicesArePublished(t *testing.T) {
	definitions := published(t)
	for path, want := range map[string][]any{
		"RoleScaling.mode":     {"External", "Static"},
		"PlacementPolicy.type": {"ExclusiveSlice", "ExclusiveTopology", "None"},
	} {
		kind, name, _ := strings.Cut(path, ".")
		if diff := cmp.Diff(want, definitions[models+kind].Properties[name].Enum); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}
