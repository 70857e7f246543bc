// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"math/rand"
	"os"
	"strconv"
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

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/fuzzer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// seedVariable repeats a failed run with the seed that it logged.
const seedVariable = "FUZZ_SEED"

// The library's number of rounds is meant for many big types; ours is one, and quick. It has no flag in `go test`.
func init() { *roundtrip.FuzzIters = 300 }

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
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, jobsetfuzzer.Funcs), rand.NewSource(seed), codecs)
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

func TestConversionLosesNothing(t *testing.T) {
	scheme, codecs := newScheme()
	filler := newFiller(t, codecs)
	for range *roundtrip.FuzzIters {
		want := &v1alpha2.JobSet{}
		filler.Fill(want)
		want.TypeMeta = v1alpha2.JobSet{}.TypeMeta // conversion leaves the kind to the codecs
		hub, got := &jobset.JobSet{}, &v1alpha2.JobSet{}
		original := want.DeepCopy()
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

// A fuzzed object carries all defaults already, so that defaulting it must change nothing; if it does, then fuzzer and
// defaults disagree, and the round trips above prove less than they seem to.
func TestDefaultsChangeNothingInFuzzedObjects(t *testing.T) {
	scheme, codecs := newScheme()
	filler := newFiller(t, codecs)
	for range *roundtrip.FuzzIters {
		want := &v1alpha2.JobSet{}
		filler.Fill(want)
		got := want.DeepCopy()
		scheme.Default(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("defaults changed a fuzzed object (-want +got):\n%s", diff)
		}
	}
}

// The registration of the group is what the server builds its storage and its discovery from.
func TestInstallRegistersTheGroup(t *testing.T) {
	scheme, _ := newScheme()
	want := []string{"jobset.x-k8s.io/v1alpha2"}
	var got []string
	for _, gv := range scheme.PrioritizedVersionsForGroup(jobset.GroupName) {
		got = append(got, gv.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("versions by priority (-want +got):\n%s", diff)
	}
	for _, kind := range []string{"JobSet", "JobSetList"} {
		for _, gv := range []string{runtime.APIVersionInternal, "v1alpha2"} {
			gvk := jobset.SchemeGroupVersion.WithKind(kind)
			gvk.Version = gv
			if !scheme.Recognizes(gvk) {
				t.Errorf("%s is not registered", gvk)
			}
		}
	}
}
