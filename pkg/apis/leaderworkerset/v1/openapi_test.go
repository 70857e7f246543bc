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

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/install"
	generated "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
)

// models is how the definitions of the group are called; generated SDKs derive their names from it.
const models = "io.x-k8s.leaderworkerset.v1."

// published builds the definitions that the server publishes for the kinds that are stored, with all that they refer to.
func published(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	out, err := builder3.BuildOpenAPIDefinitionsForResources(&common.OpenAPIV3Config{
		GetDefinitions:    generated.GetOpenAPIDefinitions,
		GetDefinitionName: openapi.NewDefinitionNamer(scheme).GetDefinitionName,
	}, models+"LeaderWorkerSet", models+"LeaderWorkerSetList")
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
		"GroupRestartBackoff", "GroupStatus", "LastAction", "LeaderWorkerSet", "LeaderWorkerSetList", "LeaderWorkerSetSpec", "LeaderWorkerSetStatus",
		"LeaderWorkerTemplate", "NetworkConfig", "RequestedRestart", "RollingUpdateConfiguration", "RolloutStrategy", "SubGroupPolicy",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	for _, kind := range []string{"LeaderWorkerSet", "LeaderWorkerSetList"} {
		want := []any{map[string]any{"group": "leaderworkerset.x-k8s.io", "version": "v1", "kind": kind}}
		if diff := cmp.Diff(any(want), definitions[models+kind].Extensions["x-kubernetes-group-version-kind"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// Server-side apply depends on the types of lists.
func TestListsHaveTheirTypes(t *testing.T) {
	definitions := published(t)
	for path, want := range map[string]string{
		models + "LeaderWorkerTemplate.volumeClaimTemplates":       "atomic []",
		models + "LeaderWorkerSetStatus.conditions":                "map [type]",
		models + "LeaderWorkerSetStatus.groups":                    "map [index]",
		models + "RequestedRestart.groups":                         "set []",
		models + "RequestedRestart.leaders":                        "set []",
		"io.k8s.api.core.v1.PodSpec.containers":                    "map [name]",
		"io.k8s.api.core.v1.PodSpec.initContainers":                "map [name]",
		"io.k8s.api.core.v1.PodSpec.ephemeralContainers":           "map [name]",
		"io.k8s.api.core.v1.PodSpec.volumes":                       "map [name]",
		"io.k8s.api.core.v1.PodSpec.imagePullSecrets":              "map [name]",
		"io.k8s.api.core.v1.PodSpec.resourceClaims":                "map [name]",
		"io.k8s.api.core.v1.PodSpec.schedulingGates":               "map [name]",
		"io.k8s.api.core.v1.PodSpec.hostAliases":                   "map [ip]",
		"io.k8s.api.core.v1.PodSpec.topologySpreadConstraints":     "map [topologyKey whenUnsatisfiable]",
		"io.k8s.api.core.v1.PodSpec.tolerations":                   "atomic []",
		"io.k8s.api.core.v1.Container.env":                         "map [name]",
		"io.k8s.api.core.v1.Container.envFrom":                     "atomic []",
		"io.k8s.api.core.v1.Container.ports":                       "map [containerPort protocol]",
		"io.k8s.api.core.v1.Container.volumeMounts":                "map [mountPath]",
		"io.k8s.api.core.v1.Container.volumeDevices":               "map [devicePath]",
		"io.k8s.api.core.v1.Container.command":                     "atomic []",
		"io.k8s.api.core.v1.Container.args":                        "atomic []",
		"io.k8s.api.core.v1.ResourceRequirements.claims":           "map [name]",
		"io.k8s.api.core.v1.PersistentVolumeClaimSpec.accessModes": "atomic []",
		"io.k8s.api.core.v1.NodeSelector.nodeSelectorTerms":        "atomic []",
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
		"LeaderWorkerTemplate.restartPolicy": {"Default", "None", "RecreateGroupAfterStart", "RecreateGroupOnPodRestart"},
		"LeaderWorkerSetSpec.startupPolicy":  {"LeaderCreated", "LeaderReady"},
		"RolloutStrategy.type":               {"RollingUpdate"},
		"SubGroupPolicy.subGroupPolicyType":  {"LeaderExcluded", "LeaderWorker"},
		"NetworkConfig.subdomainPolicy":      {"Shared", "UniquePerReplica"},
		"LastAction.action":                  {"Pause", "Restart", "Resume", "Rollback"},
	} {
		kind, name, _ := strings.Cut(path, ".")
		if diff := cmp.Diff(want, definitions[models+kind].Properties[name].Enum); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}
