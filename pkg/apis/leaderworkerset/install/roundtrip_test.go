// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"math/rand"
	"os"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	lwsfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/fuzzer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/install"
	v1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// seedVariable is a seed other than the usual one.
const seedVariable = "FUZZ_SEED"

// The library's number of rounds is meant for many big types. It has no flag in `go test`.
func init() { *roundtrip.FuzzIters = 100 }

func newScheme() (*runtime.Scheme, serializer.CodecFactory) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme, serializer.NewCodecFactory(scheme)
}

func newFiller(t *testing.T, codecs serializer.CodecFactory) *randfill.Filler {
	t.Helper()
	seed := int64(15)
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatalf("%s must be a whole number: %v", seedVariable, err)
		}
	}
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, lwsfuzzer.Funcs), rand.NewSource(seed), codecs)
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
	for range *roundtrip.FuzzIters {
		want := &v1.LeaderWorkerSet{}
		filler.Fill(want)
		got := want.DeepCopyObject()
		scheme.Default(got)
		if diff := cmp.Diff(runtime.Object(want), got); diff != "" {
			t.Fatalf("defaults changed a fuzzed set (-want +got):\n%s", diff)
		}
	}
}

func TestConversionLosesNothing(t *testing.T) {
	scheme, codecs := newScheme()
	filler := newFiller(t, codecs)
	for range *roundtrip.FuzzIters {
		want := &v1.LeaderWorkerSet{}
		filler.Fill(want)
		want.TypeMeta = v1.LeaderWorkerSet{}.TypeMeta // conversion leaves the kind to the codecs
		hub, got, original := &leaderworkerset.LeaderWorkerSet{}, &v1.LeaderWorkerSet{}, want.DeepCopy()
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

// The server can serve a request only if both of its versions are registered.
func TestInstallRegistersTheGroup(t *testing.T) {
	scheme, _ := newScheme()
	var got []string
	for _, gv := range scheme.PrioritizedVersionsForGroup(leaderworkerset.GroupName) {
		got = append(got, gv.String())
	}
	if diff := cmp.Diff([]string{"leaderworkerset.x-k8s.io/v1"}, got); diff != "" {
		t.Errorf("versions by priority (-want +got):\n%s", diff)
	}
	for _, kind := range []string{"LeaderWorkerSet", "LeaderWorkerSetList"} {
		for _, version := range []string{runtime.APIVersionInternal, "v1"} {
			gvk := leaderworkerset.SchemeGroupVersion.WithKind(kind)
			gvk.Version = version
			if !scheme.Recognizes(gvk) {
				t.Errorf("%s is not registered", gvk)
			}
		}
	}
}
