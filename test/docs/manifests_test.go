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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/install"
	podreadinessgroupregistry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/podreadinessgroup"
	sequentialjobregistry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob"
	disaggregatedsetregistry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/disaggregatedset"
	jobsetregistry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
	leaderworkersetregistry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset"
)

// kinds are the kinds whose manifests are checked, with the strategy that creates them.
var kinds = map[string]func(scheme *runtime.Scheme) rest.RESTCreateStrategy{
	"JobSet": func(scheme *runtime.Scheme) rest.RESTCreateStrategy {
		return jobsetregistry.NewStrategy(scheme, gates.Gates{}, time.Now)
	},
	"SequentialJob": func(scheme *runtime.Scheme) rest.RESTCreateStrategy {
		return sequentialjobregistry.NewStrategy(scheme, gates.Gates{}, time.Now)
	},
	"LeaderWorkerSet": func(scheme *runtime.Scheme) rest.RESTCreateStrategy {
		return leaderworkersetregistry.NewStrategy(scheme, time.Now)
	},
	"DisaggregatedSet": func(scheme *runtime.Scheme) rest.RESTCreateStrategy {
		return disaggregatedsetregistry.NewStrategy(scheme)
	},
	"PodReadinessGroup": func(scheme *runtime.Scheme) rest.RESTCreateStrategy {
		return podreadinessgroupregistry.NewStrategy(scheme)
	},
}

// TestManifestsAreAccepted creates every object of our kinds in the documentation and in the examples as the API server does, with
// all gates off but the one that a set in it needs: without an unknown field, an error or a warning.
func TestManifestsAreAccepted(t *testing.T) {
	found := map[string]int{}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		for _, manifest := range manifests(t, page) {
			found[accept(t, page, manifest)]++
		}
	}
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		examples, err := filepath.Glob(filepath.Join(root, "artifacts", "examples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, example := range examples {
			content, err := os.ReadFile(example)
			if err != nil {
				t.Fatal(err)
			}
			for manifest := range strings.SplitSeq(string(content), "\n---\n") {
				found[accept(t, example, manifest)]++
			}
		}
	}
	for kind, want := range map[string]int{"JobSet": 14, "SequentialJob": 5, "LeaderWorkerSet": 7, "DisaggregatedSet": 4} {
		if found[kind] < want {
			t.Errorf("found %v: want at least %d of kind %s, or the search has stopped working", found, want, kind)
		}
	}
}

// manifests returns the indented blocks of a page that are complete objects, and what commands of a fenced block read up to EOF.
func manifests(t *testing.T, page string) (found []string) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(string(content), "<<'EOF'\n")[1:] {
		text, _, _ = strings.Cut(text, "\nEOF\n")
		found = append(found, text)
	}
	var block []string
	for _, line := range strings.Split(string(content)+"\n", "\n") {
		if rest, ok := strings.CutPrefix(line, "    "); ok {
			block = append(block, rest)
			continue
		}
		if text := strings.Join(block, "\n"); strings.HasPrefix(text, "apiVersion: ") && strings.Contains(text, "\nspec:") {
			found = append(found, text)
		}
		block = nil
	}
	return found
}

// accept creates the object of a manifest if it is of one of the kinds, and returns its kind.
func accept(t *testing.T, file, manifest string) string {
	t.Helper()
	scheme, object, kind := decode(t, file, manifest)
	if object == nil {
		return kind
	}
	strategy := kinds[kind](scheme)
	if strings.Contains(manifest, "restartStrategy: InPlaceRestart") {
		strategy = jobsetregistry.NewStrategy(scheme, gates.Gates{InPlaceRestart: true}, time.Now)
	}
	for _, problem := range create(strategy, object) {
		t.Errorf("%s: %s\n%s", file, problem, manifest)
	}
	return kind
}

// decode returns the object of a manifest with its kind, or nil if it is of none of the kinds or has errors, which it reports.
func decode(t *testing.T, file, manifest string) (*runtime.Scheme, runtime.Object, string) {
	t.Helper()
	scheme := runtime.NewScheme()
	jobsetinstall.Install(scheme)
	batchinstall.Install(scheme)
	disaggregatedsetinstall.Install(scheme)
	leaderworkersetinstall.Install(scheme)
	_, text, _ := strings.Cut("\n"+manifest, "\nkind: ")
	kind, _, _ := strings.Cut(text, "\n")
	if kinds[kind] == nil {
		return scheme, nil, kind
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(
		jobset.SchemeGroupVersion, batch.SchemeGroupVersion, disaggregatedset.SchemeGroupVersion, leaderworkerset.SchemeGroupVersion)
	object, err := runtime.Decode(decoder, []byte(manifest))
	if err != nil {
		t.Errorf("%s: %v\n%s", file, err, manifest)
		return scheme, nil, kind
	}
	return scheme, object, kind
}

// create does what the API server does before it stores an object, and returns errors and warnings.
func create(strategy rest.RESTCreateStrategy, object runtime.Object) (problems []string) {
	object.(metav1.Object).SetNamespace("default")
	ctx := genericapirequest.WithNamespace(context.Background(), "default")
	strategy.PrepareForCreate(ctx, object)
	for _, err := range strategy.Validate(ctx, object) {
		problems = append(problems, err.Error())
	}
	for _, warning := range strategy.WarningsOnCreate(ctx, object) {
		problems = append(problems, "warning: "+warning)
	}
	return problems
}
