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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"sigs.k8s.io/randfill"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	dsfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/fuzzer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/install"
	v1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
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
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, dsfuzzer.Funcs), rand.NewSource(seed), codecs)
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

// Versioned to bytes and back in CBOR, which clients may ask for.
func TestTypesSurviveCBOR(t *testing.T) {
	scheme, codecs := newScheme()
	filler, codec := newFiller(t, codecs), cbor.NewSerializer(scheme, scheme)
	for range *roundtrip.FuzzIters {
		for _, want := range fuzzed(filler) {
			data, err := runtime.Encode(codec, want)
			if err != nil {
				t.Fatalf("encoding %T: %v", want, err)
			}
			got, err := runtime.Decode(codec, data)
			if err != nil {
				t.Fatalf("decoding %T: %v", want, err)
			}
			if !apiequality.Semantic.DeepEqual(want, got) {
				t.Fatalf("%T (-want +got):\n%s", want, cmp.Diff(want, got))
			}
		}
	}
}

// fuzzed returns an object of each kind that is stored.
func fuzzed(filler *randfill.Filler) []runtime.Object {
	set, scaler := &v1.DisaggregatedSet{}, &v1.DisaggregatedSetRoleScaler{}
	filler.Fill(set)
	filler.Fill(scaler)
	set.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("DisaggregatedSet"))
	scaler.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("DisaggregatedSetRoleScaler"))
	return []runtime.Object{set, scaler}
}

// A fuzzed object carries all defaults already. If defaults change it, the round trips above prove less than they seem to.
func TestDefaultsChangeNothingInFuzzedObjects(t *testing.T) {
	scheme, codecs := newScheme()
	filler := newFiller(t, codecs)
	for range *roundtrip.FuzzIters {
		for _, want := range fuzzed(filler) {
			got := want.DeepCopyObject()
			scheme.Default(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("defaults changed a fuzzed %T (-want +got):\n%s", want, diff)
			}
		}
	}
}

func TestConversionLosesNothing(t *testing.T) {
	scheme, codecs := newScheme()
	filler := newFiller(t, codecs)
	for range *roundtrip.FuzzIters {
		for i, want := range fuzzed(filler) {
			want.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // conversion leaves the kind to the codecs
			hub := []runtime.Object{&disaggregatedset.DisaggregatedSet{}, &disaggregatedset.DisaggregatedSetRoleScaler{}}[i]
			got := []runtime.Object{&v1.DisaggregatedSet{}, &v1.DisaggregatedSetRoleScaler{}}[i]
			original := want.DeepCopyObject()
			if err := scheme.Convert(want, hub, nil); err != nil {
				t.Fatalf("%T to the internal version: %v", want, err)
			}
			if err := scheme.Convert(hub, got, nil); err != nil {
				t.Fatalf("%T from the internal version: %v", want, err)
			}
			if !apiequality.Semantic.DeepEqual(original, got) {
				t.Fatalf("%T there and back (-want +got):\n%s", want, cmp.Diff(original, got))
			}
		}
	}
}

// The server can serve a request only if both of its versions are registered.
func TestInstallRegistersTheGroup(t *testing.T) {
	scheme, _ := newScheme()
	var got []string
	for _, gv := range scheme.PrioritizedVersionsForGroup(disaggregatedset.GroupName) {
		got = append(got, gv.String())
	}
	if diff := cmp.Diff([]string{"disaggregatedset.x-k8s.io/v1"}, got); diff != "" {
		t.Errorf("versions by priority (-want +got):\n%s", diff)
	}
	for _, kind := range []string{"DisaggregatedSet", "DisaggregatedSetList", "DisaggregatedSetRoleScaler", "DisaggregatedSetRoleScalerList"} {
		for _, version := range []string{runtime.APIVersionInternal, "v1"} {
			gvk := disaggregatedset.SchemeGroupVersion.WithKind(kind)
			gvk.Version = version
			if !scheme.Recognizes(gvk) {
				t.Errorf("%s is not registered", gvk)
			}
		}
	}
}
