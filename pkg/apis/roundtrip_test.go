// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
)

// Internal to versioned to bytes and back, in JSON and protobuf, with defaulting and conversion on the way.
func TestInternalTypesSurviveTheWire(t *testing.T) {
	forEachGroup(t, func(t *testing.T, g group) {
		scheme, codecs := g.scheme()
		*roundtrip.FuzzIters = g.rounds // the library has no other way, and no flag in `go test`
		roundtrip.RoundTripTypes(t, scheme, codecs, g.filler(t, codecs), nil)
	})
}

// Versioned to bytes and back, in JSON and protobuf, without defaulting and conversion.
func TestVersionedTypesSurviveTheWire(t *testing.T) {
	forEachGroup(t, func(t *testing.T, g group) {
		scheme, codecs := g.scheme()
		*roundtrip.FuzzIters = g.rounds
		roundtrip.RoundTripExternalTypes(t, scheme, codecs, g.filler(t, codecs), nil)
	})
}

// forEachRandomObject runs a test for random objects of each kind that is no list, in the version that is served.
func forEachRandomObject(t *testing.T, test func(*testing.T, group, *runtime.Scheme, runtime.Object)) {
	forEachGroup(t, func(t *testing.T, g group) {
		scheme, codecs := g.scheme()
		filler := g.filler(t, codecs)
		for range g.rounds {
			for _, kind := range g.objects() {
				object := created(t, scheme, kind)
				filler.Fill(object)
				object.GetObjectKind().SetGroupVersionKind(kind)
				test(t, g, scheme, object)
			}
		}
	})
}

// Versioned to bytes and back in CBOR, which clients may ask for.
func TestTypesSurviveCBOR(t *testing.T) {
	forEachRandomObject(t, func(t *testing.T, _ group, scheme *runtime.Scheme, want runtime.Object) {
		codec := cbor.NewSerializer(scheme, scheme)
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
	})
}

// A fuzzed object carries all defaults already, so that defaulting it must change nothing; if it does, then fuzzer and
// defaults disagree, and the round trips above prove less than they seem to.
func TestDefaultsChangeNothingInFuzzedObjects(t *testing.T) {
	forEachRandomObject(t, func(t *testing.T, _ group, scheme *runtime.Scheme, want runtime.Object) {
		got := want.DeepCopyObject()
		scheme.Default(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("defaults changed a fuzzed %T (-want +got):\n%s", want, diff)
		}
	})
}

func TestConversionLosesNothing(t *testing.T) {
	forEachRandomObject(t, convertThereAndBack)
}

// convertThereAndBack converts an object to the internal version and back.
func convertThereAndBack(t *testing.T, g group, scheme *runtime.Scheme, object runtime.Object) {
	t.Helper()
	kind := object.GetObjectKind().GroupVersionKind()
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // conversion leaves the kind to the codecs
	hub, got, want := created(t, scheme, g.hub.WithKind(kind.Kind)), created(t, scheme, kind), object.DeepCopyObject()
	if err := scheme.Convert(object, hub, nil); err != nil {
		t.Fatalf("%s to the internal version: %v", kind, err)
	}
	if err := scheme.Convert(hub, got, nil); err != nil {
		t.Fatalf("%s from the internal version: %v", kind, err)
	}
	if !apiequality.Semantic.DeepEqual(want, got) {
		t.Fatalf("%s there and back (-want +got):\n%s", kind, cmp.Diff(want, got))
	}
}
