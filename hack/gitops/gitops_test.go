// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitops runs the health checks of artifacts/gitops on objects that a cluster had, as Argo CD and Flux do, and compares the
// results with docs/operations/gitops.md. TestStatesForGitOps of test/e2e records the objects.
package gitops

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	root = "../.."
	page = "docs/operations/gitops.md"
)

func text(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// states returns the recorded objects by kind and state.
func states(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("testdata/states/*/*.yaml")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d objects are recorded (%v)", len(files), err)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if content, err = yaml.YAMLToJSON(content); err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found[filepath.Base(filepath.Dir(file))+"/"+strings.TrimSuffix(filepath.Base(file), ".yaml")] = object
	}
	return found
}

// row is a line of the table of states.
var row = regexp.MustCompile(`(?m)^\| (\w+) \| ([a-z-]+)(?:, [^|]*)? \| (\w+) \| (\w+) \| (\w+) \|$`)

// TestStatesOfThePage compares the table of the page with what Argo CD and Flux say about the recorded objects.
func TestStatesOfThePage(t *testing.T) {
	want := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(text(t, page), -1) {
		want[strings.ToLower(m[1])+"/"+m[2]] = fmt.Sprintf("%s | %s | %s", m[3], m[4], m[5])
	}
	got, checks, expressions := map[string]string{}, scripts(t), evaluators(t)
	for name, object := range states(t) {
		health := assess(t, checks, object)
		if health.Message == "" && health.Status != "Progressing" {
			t.Errorf("%s: Argo CD shows no message", name)
		}
		got[name] = fmt.Sprintf("%s | %s | %s", health.Status, evaluate(t, expressions, object), compute(t, object))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Argo CD | Flux | Flux without expressions (-%s +result):\n%s", page, diff)
	}
}

var block = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestManifestsOfThePage checks that the page shows parts of files that the other tests use.
func TestManifestsOfThePage(t *testing.T) {
	var files []string
	for _, name := range []string{"argocd-cm.yaml", "argocd-application.yaml", "flux-kustomization.yaml"} {
		files = append(files, text(t, "artifacts/gitops/"+name))
		if !strings.Contains(text(t, page), "artifacts/gitops/"+name) {
			t.Errorf("%s does not mention %s", page, name)
		}
	}
	blocks := block.FindAllStringSubmatch(text(t, page), -1)
	for _, b := range blocks {
		if !slices.ContainsFunc(files, func(content string) bool { return strings.Contains(content, b[1]) }) {
			t.Errorf("no file of artifacts/gitops has this text of %s:\n%s", page, b[1])
		}
	}
	if len(blocks) < 2 {
		t.Errorf("%s shows %d manifests", page, len(blocks))
	}
}
