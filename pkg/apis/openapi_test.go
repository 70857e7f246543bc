// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	generated "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

const refs = "#/components/schemas/"

// published builds the definitions that the server publishes for the kinds that are stored, with all that they refer to.
func published(t *testing.T, g group) (definitions map[string]*spec.Schema, roots []string) {
	t.Helper()
	scheme, _ := g.scheme()
	for _, kind := range append(g.lists(), g.stored...) {
		roots = append(roots, g.models+kind)
	}
	definitions, err := builder3.BuildOpenAPIDefinitionsForResources(&common.OpenAPIV3Config{
		GetDefinitions:    generated.GetOpenAPIDefinitions,
		GetDefinitionName: openapi.NewDefinitionNamer(scheme).GetDefinitionName,
	}, roots...)
	if err != nil {
		t.Fatalf("building the definitions: %v", err)
	}
	return definitions, roots
}

func TestKindsCarryTheirGroupAndVersion(t *testing.T) {
	forEachGroup(t, func(t *testing.T, g group) {
		definitions, roots := published(t, g)
		for _, root := range roots {
			kind := strings.TrimPrefix(root, g.models)
			want := []any{map[string]any{"group": g.version.Group, "version": g.version.Version, "kind": kind}}
			if diff := cmp.Diff(any(want), definitions[root].Extensions["x-kubernetes-group-version-kind"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", kind, diff)
			}
		}
	})
}

// `kubectl explain --recursive` shows these texts, of our fields and of those of the templates.
func TestEveryFieldIsDescribed(t *testing.T) {
	forEachGroup(t, func(t *testing.T, g group) {
		definitions, queue := published(t, g)
		fields, seen := 0, map[string]bool{}
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
			if strings.HasPrefix(name, g.models) && definition.Description == "" {
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
		if fields < 500 && !g.withoutTemplates {
			t.Errorf("only %d fields were found: the walk does not reach the templates", fields)
		}
		for name := range definitions {
			if !seen[name] {
				t.Errorf("definition %s is not referred to", name)
			}
		}
	})
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

// A file for each group lists the definitions that are not of Kubernetes, and what clients read in them: the fields that are required,
// the types of lists, which server-side apply and strategic merge patches follow, choices, limits, defaults and formats.
func TestPublishedSchema(t *testing.T) {
	forEachGroup(t, func(t *testing.T, g group) {
		definitions, _ := published(t, g)
		var out strings.Builder
		for _, name := range slices.Sorted(maps.Keys(definitions)) {
			if strings.HasPrefix(name, "io.k8s.") {
				continue
			}
			fmt.Fprintln(&out, name)
			if required := definitions[name].Required; len(required) > 0 {
				fmt.Fprintf(&out, "  required: %s\n", strings.Join(required, ", "))
			}
			for _, field := range slices.Sorted(maps.Keys(definitions[name].Properties)) {
				if text := describe(definitions[name].Properties[field]); text != "" {
					fmt.Fprintf(&out, "  %s: %s\n", field, text)
				}
			}
		}
		golden.Compare(t, filepath.Join("openapi", g.version.Group+".txt"), out.String())
	})
}

// describe says in one line what a schema demands; nothing if it is an object, a text or a boolean without limits.
func describe(s spec.Schema) string {
	var out []string
	if s.Type.Contains("array") {
		out = append(out, "list "+listType(s))
	}
	if s.Format != "" {
		out = append(out, s.Format)
	}
	if len(s.Enum) > 0 {
		out = append(out, fmt.Sprintf("one of %v", s.Enum))
	}
	if s.Minimum != nil {
		out = append(out, fmt.Sprintf("minimum %v", *s.Minimum))
	}
	if s.MaxItems != nil {
		out = append(out, fmt.Sprintf("at most %d items", *s.MaxItems))
	}
	// The generator states zero values as defaults of whatever has no pointer; these are not our defaults.
	switch text := fmt.Sprint(s.Default); text {
	case "<nil>", "", "0", "map[]":
	default:
		out = append(out, "default "+text)
	}
	return strings.Join(out, ", ")
}

// listType says how server-side apply and strategic merge patches treat a list.
func listType(s spec.Schema) string {
	kind, ok := s.Extensions["x-kubernetes-list-type"].(string)
	if !ok {
		kind = "unstated"
	}
	if keys, ok := s.Extensions["x-kubernetes-list-map-keys"].([]any); ok {
		kind += fmt.Sprintf(" by %v", keys)
	}
	if strategy, ok := s.Extensions["x-kubernetes-patch-strategy"]; ok {
		kind += fmt.Sprintf(", %v by %v", strategy, s.Extensions["x-kubernetes-patch-merge-key"])
	}
	return kind
}

// Server-side apply depends on the types of the lists inside pod templates and claims.
func TestListsOfTemplatesHaveTheirTypes(t *testing.T) {
	forEachGroup(t, func(t *testing.T, g group) {
		if g.withoutTemplates {
			return
		}
		definitions, _ := published(t, g)
		for path, want := range map[string]string{
			"PodSpec.containers":                    "map [name]",
			"PodSpec.initContainers":                "map [name]",
			"PodSpec.ephemeralContainers":           "map [name]",
			"PodSpec.volumes":                       "map [name]",
			"PodSpec.imagePullSecrets":              "map [name]",
			"PodSpec.resourceClaims":                "map [name]",
			"PodSpec.schedulingGates":               "map [name]",
			"PodSpec.hostAliases":                   "map [ip]",
			"PodSpec.topologySpreadConstraints":     "map [topologyKey whenUnsatisfiable]",
			"PodSpec.tolerations":                   "atomic []",
			"Container.env":                         "map [name]",
			"Container.envFrom":                     "atomic []",
			"Container.ports":                       "map [containerPort protocol]",
			"Container.volumeMounts":                "map [mountPath]",
			"Container.volumeDevices":               "map [devicePath]",
			"Container.command":                     "atomic []",
			"Container.args":                        "atomic []",
			"ResourceRequirements.claims":           "map [name]",
			"PersistentVolumeClaimSpec.accessModes": "atomic []",
			"NodeSelector.nodeSelectorTerms":        "atomic []",
		} {
			kind, field, _ := strings.Cut(path, ".")
			definition := definitions["io.k8s.api.core.v1."+kind]
			if definition == nil {
				t.Errorf("%s is not published", kind)
				continue
			}
			schema := definition.Properties[field]
			keys, _ := schema.Extensions["x-kubernetes-list-map-keys"].([]any)
			if got := fmt.Sprintf("%v %v", schema.Extensions["x-kubernetes-list-type"], keys); got != want {
				t.Errorf("%s is %q, want %q", path, got, want)
			}
		}
	})
}
