// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"math/rand"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/fuzzer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// seedVariable repeats a failed run with the seed that it logged.
const seedVariable = "FUZZ_SEED"

// The library's number of rounds is meant for many big types. It has no flag in `go test`.
func init() { *roundtrip.FuzzIters = 100 }

var kinds = []string{
	"JobSetRestart", "JobSetSuspend", "JobSetResume", "JobSetCancel", "JobSetRetry",
	"SequentialJob", "SequentialJobList", "PodReadinessGroup", "PodReadinessGroupList",
	"SequentialJobRestart", "SequentialJobSuspend", "SequentialJobResume", "SequentialJobCancel", "SequentialJobRetry",
}

func newScheme() (*runtime.Scheme, serializer.CodecFactory) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme, serializer.NewCodecFactory(scheme)
}

func newFiller(t *testing.T, codecs serializer.CodecFactory) *randfill.Filler {
	t.Helper()
	seed := time.Now().UnixNano()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatalf("%s must be a whole number: %v", seedVariable, err)
		}
	}
	t.Logf("repeat with %s=%d", seedVariable, seed)
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, batchfuzzer.Funcs), rand.NewSource(seed), codecs)
}

// Internal to versioned to bytes and back, in JSON and protobuf, with defaulting and conversion on the way.
func TestInternalTypesSurviveTheWire(t *testing.T) {
	scheme, codecs := newScheme()
	roundtrip.RoundTripTypes(t, scheme, codecs, newFiller(t, codecs), nil)
}

// Versioned to bytes and back, in JSON and protobuf, without defaulting and conversion.
func TestVersionedTypesSurviveTheWire(t *testing.T) {
	scheme, codecs := newScheme()
	roundtrip.RoundTripExternalTypes(t, scheme, codecs, newFiller(t, codecs), nil)
}

// A fuzzed object carries all defaults already. If defaults change it, the round trips above prove less than they seem to.
func TestDefaultsChangeNothingInFuzzedObjects(t *testing.T) {
	scheme, codecs := newScheme()
	filler := newFiller(t, codecs)
	for _, kind := range []string{"JobSetRestart", "SequentialJob", "PodReadinessGroup"} {
		for range *roundtrip.FuzzIters {
			want, err := scheme.New(v1alpha1.SchemeGroupVersion.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			filler.Fill(want)
			got := want.DeepCopyObject()
			scheme.Default(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("defaults changed a fuzzed %s (-want +got):\n%s", kind, diff)
			}
		}
	}
}

func TestConversionLosesNothing(t *testing.T) {
	scheme, codecs := newScheme()
	filler := newFiller(t, codecs)
	for range *roundtrip.FuzzIters {
		want := &v1alpha1.SequentialJob{}
		filler.Fill(want)
		want.TypeMeta = v1alpha1.SequentialJob{}.TypeMeta // conversion leaves the kind to the codecs
		hub, got, original := &batch.SequentialJob{}, &v1alpha1.SequentialJob{}, want.DeepCopy()
		if err := scheme.Convert(want, hub, nil); err != nil {
			t.Fatalf("to the internal version: %v", err)
		}
		if err := scheme.Convert(hub, got, nil); err != nil {
			t.Fatalf("from the internal version: %v", err)
		}
		if !apiequality.Semantic.DeepEqual(original, got) {
			t.Fatalf("there and back (-want +got):\n%s", cmp.Diff(original, got))
		}
	}
}

// Users see which steps have completed, and how many children there are, also while there are none. The server stores protobuf,
// which does not distinguish an empty list from an absent one.
func TestZerosOfTheStatusArePrinted(t *testing.T) {
	_, codecs := newScheme()
	encoder := func(media string) runtime.Encoder {
		info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
		if !ok {
			t.Fatalf("no serializer of %s", media)
		}
		return codecs.EncoderForVersion(info.Serializer, v1alpha1.SchemeGroupVersion)
	}
	stored, err := runtime.Encode(encoder(runtime.ContentTypeProtobuf), &batch.SequentialJob{})
	if err != nil {
		t.Fatal(err)
	}
	hub, err := runtime.Decode(codecs.UniversalDecoder(batch.SchemeGroupVersion), stored)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := runtime.Encode(encoder(runtime.ContentTypeJSON), hub)
	if err != nil {
		t.Fatal(err)
	}
	const want = `"status":{"state":{"active":0,"succeeded":0,"failed":0},"progress":{"completedIndices":[]}}`
	if !strings.Contains(string(printed), want) {
		t.Errorf("%s is missing in %s", want, printed)
	}
}

func TestScopeDefaultsToTheWholeSet(t *testing.T) {
	scheme, _ := newScheme()
	got := &v1alpha1.JobSetRestart{}
	scheme.Default(got)
	if diff := cmp.Diff(v1alpha1.RestartScopeJobSet, got.Spec.Scope); diff != "" {
		t.Errorf("scope (-want +got):\n%s", diff)
	}
}

// The server can serve a request only if both of its versions are registered.
func TestInstallRegistersTheGroup(t *testing.T) {
	scheme, _ := newScheme()
	var got []string
	for _, gv := range scheme.PrioritizedVersionsForGroup(batch.GroupName) {
		got = append(got, gv.String())
	}
	if diff := cmp.Diff([]string{"batch.jobset-apiserver.io/v1alpha1"}, got); diff != "" {
		t.Errorf("versions by priority (-want +got):\n%s", diff)
	}
	for _, kind := range kinds {
		for _, version := range []string{runtime.APIVersionInternal, "v1alpha1"} {
			gvk := batch.SchemeGroupVersion.WithKind(kind)
			gvk.Version = version
			if !scheme.Recognizes(gvk) {
				t.Errorf("%s is not registered", gvk)
			}
		}
	}
}
