// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	jobsetregistry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
)

// TestManifestsAreAccepted creates every JobSet of the documentation and of the examples as the API server does, with all gates
// off: without an unknown field, an error or a warning.
func TestManifestsAreAccepted(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		for _, manifest := range manifests(t, page) {
			found++
			accept(t, page, manifest)
		}
	}
	if found < 4 {
		t.Errorf("found %d JobSets in docs: want at least 4, or the search has stopped working", found)
	}
	examples, err := filepath.Glob(filepath.Join(root, "artifacts", "examples", "*.yaml"))
	if err != nil || len(examples) < 7 {
		t.Fatalf("found %d examples (%v): want at least 7", len(examples), err)
	}
	for _, example := range examples {
		content, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		for manifest := range strings.SplitSeq(string(content), "\n---\n") {
			if strings.Contains(manifest, "\nkind: JobSet\n") {
				accept(t, example, manifest)
			}
		}
	}
}

// manifests returns the indented blocks of a page that are complete JobSets.
func manifests(t *testing.T, page string) (found []string) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var block []string
	for _, line := range strings.Split(string(content)+"\n", "\n") {
		if rest, ok := strings.CutPrefix(line, "    "); ok {
			block = append(block, rest)
			continue
		}
		if text := strings.Join(block, "\n"); strings.HasPrefix(text, "apiVersion: jobset.x-k8s.io/") && strings.Contains(text, "\nspec:") {
			found = append(found, text)
		}
		block = nil
	}
	return found
}

func accept(t *testing.T, file, manifest string) {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	object, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(jobset.SchemeGroupVersion), []byte(manifest))
	if err != nil {
		t.Errorf("%s: %v\n%s", file, err, manifest)
		return
	}
	js := object.(*jobset.JobSet)
	ctx := genericapirequest.WithNamespace(context.Background(), "default")
	js.Namespace = "default"
	strategy := jobsetregistry.NewStrategy(scheme, gates.Gates{}, time.Now)
	strategy.PrepareForCreate(ctx, js)
	for _, err := range strategy.Validate(ctx, js) {
		t.Errorf("%s: %v\n%s", file, err, manifest)
	}
	for _, warning := range strategy.WarningsOnCreate(ctx, js) {
		t.Errorf("%s: warning: %s\n%s", file, warning, manifest)
	}
}
