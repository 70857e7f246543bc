// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apis_test checks what is the same for all API groups: registration, the wire, conversion, defaults and the published schema.
package apis_test

import (
	"math/rand"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	archivefuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/fuzzer"
	archiveinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/install"
	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/fuzzer"
	batchinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/fuzzer"
	disaggregatedsetinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/install"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/fuzzer"
	jobsetinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/fuzzer"
	leaderworkersetinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/install"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// group is an API group. Directories are relative to this one.
type group struct {
	directory string
	hub       schema.GroupVersion
	version   schema.GroupVersion
	install   func(*runtime.Scheme)
	fuzzer    fuzzer.FuzzerFuncs
	// models is the prefix of the definitions of the group; generated SDKs derive their names from it.
	models string
	// stored are the kinds that are stored. Each has a list.
	stored []string
	// requests are the kinds that are only sent.
	requests []string
	// rounds is the number of random objects of each kind. The library's number is meant for many big types.
	rounds int
	// withoutTemplates means that no kind embeds templates of pods.
	withoutTemplates bool
}

var groups = map[string]group{
	"archive.jobset-apiserver.io/v1alpha1": {
		directory: "archive/v1alpha1", hub: archive.SchemeGroupVersion, version: archivev1alpha1.SchemeGroupVersion,
		install: archiveinstall.Install, fuzzer: archivefuzzer.Funcs, models: "io.jobset-apiserver.archive.v1alpha1.",
		stored: []string{"Run"}, rounds: 100, withoutTemplates: true,
	},
	"batch.jobset-apiserver.io/v1alpha1": {
		directory: "batch/v1alpha1", hub: batch.SchemeGroupVersion, version: batchv1alpha1.SchemeGroupVersion,
		install: batchinstall.Install, fuzzer: batchfuzzer.Funcs, models: "io.jobset-apiserver.batch.v1alpha1.",
		stored: []string{"SequentialJob", "PodReadinessGroup"},
		requests: []string{
			"JobSetRestart", "JobSetSuspend", "JobSetResume", "JobSetCancel", "JobSetRetry",
			"SequentialJobRestart", "SequentialJobSuspend", "SequentialJobResume", "SequentialJobCancel", "SequentialJobRetry",
		},
		rounds: 100,
	},
	"disaggregatedset.x-k8s.io/v1": {
		directory: "disaggregatedset/v1", hub: disaggregatedset.SchemeGroupVersion, version: disaggregatedsetv1.SchemeGroupVersion,
		install: disaggregatedsetinstall.Install, fuzzer: disaggregatedsetfuzzer.Funcs, models: "io.x-k8s.disaggregatedset.v1.",
		stored: []string{"DisaggregatedSet", "DisaggregatedSetRoleScaler"}, rounds: 100,
	},
	"jobset.x-k8s.io/v1alpha2": {
		directory: "jobset/v1alpha2", hub: jobset.SchemeGroupVersion, version: jobsetv1alpha2.SchemeGroupVersion,
		install: jobsetinstall.Install, fuzzer: jobsetfuzzer.Funcs, models: "io.x-k8s.jobset.v1alpha2.",
		stored: []string{"JobSet"}, rounds: 300,
	},
	"leaderworkerset.x-k8s.io/v1": {
		directory: "leaderworkerset/v1", hub: leaderworkerset.SchemeGroupVersion, version: leaderworkersetv1.SchemeGroupVersion,
		install: leaderworkersetinstall.Install, fuzzer: leaderworkersetfuzzer.Funcs, models: "io.x-k8s.leaderworkerset.v1.",
		stored: []string{"LeaderWorkerSet"}, rounds: 100,
	},
}

// forEachGroup runs a test for every API group.
func forEachGroup(t *testing.T, test func(*testing.T, group)) {
	for name, g := range groups {
		t.Run(name, func(t *testing.T) { test(t, g) })
	}
}

// lists are the kinds of the lists of the kinds that are stored.
func (g group) lists() []string {
	var out []string
	for _, kind := range g.stored {
		out = append(out, kind+"List")
	}
	return out
}

// objects are the versioned kinds that are no lists.
func (g group) objects() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, kind := range append(append([]string{}, g.stored...), g.requests...) {
		out = append(out, g.version.WithKind(kind))
	}
	return out
}

func (g group) scheme() (*runtime.Scheme, serializer.CodecFactory) {
	scheme := runtime.NewScheme()
	g.install(scheme)
	return scheme, serializer.NewCodecFactory(scheme)
}

// seedVariable repeats a failed run with the seed that it logged. The gate has the same seed each time, the long tier another one.
const (
	seedVariable = "FUZZ_SEED"
	gateSeed     = 1
)

func (g group) filler(t *testing.T, codecs serializer.CodecFactory) *randfill.Filler {
	t.Helper()
	seed := int64(gateSeed)
	if tier.Long() {
		seed = time.Now().UnixNano()
	}
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatalf("%s must be a whole number: %v", seedVariable, err)
		}
	}
	t.Logf("repeat with %s=%d", seedVariable, seed)
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, g.fuzzer), rand.NewSource(seed), codecs)
}

// created returns an empty object.
func created(t *testing.T, scheme *runtime.Scheme, kind schema.GroupVersionKind) runtime.Object {
	t.Helper()
	object, err := scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// The server can serve a request only if both of its versions are registered.
func TestInstallRegistersTheGroup(t *testing.T) {
	forEachGroup(t, func(t *testing.T, g group) {
		scheme, _ := g.scheme()
		if diff := cmp.Diff([]schema.GroupVersion{g.version}, scheme.PrioritizedVersionsForGroup(g.hub.Group)); diff != "" {
			t.Errorf("versions by priority (-want +got):\n%s", diff)
		}
		kinds := g.objects()
		for _, list := range g.lists() {
			kinds = append(kinds, g.version.WithKind(list))
		}
		for _, kind := range kinds {
			for _, gvk := range []schema.GroupVersionKind{kind, g.hub.WithKind(kind.Kind)} {
				if !scheme.Recognizes(gvk) {
					t.Errorf("%s is not registered", gvk)
				}
			}
		}
	})
}

// Clients have the names of groups and versions compiled in.
func TestNamesOfGroups(t *testing.T) {
	for name, g := range groups {
		if got := g.version.String(); got != name || g.hub.Group != g.version.Group || g.hub.Version != runtime.APIVersionInternal {
			t.Errorf("%s is called %s, and the internal version %s", name, got, g.hub)
		}
	}
}
