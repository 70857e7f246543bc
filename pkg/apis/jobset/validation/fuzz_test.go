// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"math/rand"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/fuzzer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

// Whatever is stored may stay: no object panics the checks, and none is refused for what it was before.
func TestRandomSetsAreUpdatable(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	cases := map[string]struct {
		funcs fuzzer.FuzzerFuncs
		count int
	}{
		"small templates":         {funcs: fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, jobsetfuzzer.Funcs), count: 200},
		"wholly random templates": {funcs: metafuzzer.Funcs, count: 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fill := fuzzer.FuzzerFor(tc.funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme))
			refused := 0
			for range tc.count {
				prev, next := &jobset.JobSet{}, &jobset.JobSet{}
				fill.Fill(prev)
				fill.Fill(next)
				refused += checkRandom(t, next, prev)
			}
			if refused == 0 {
				t.Error("no random object is refused on create: the fuzzer reaches no rule")
			}
		})
	}
}

func checkRandom(t *testing.T, next, prev *jobset.JobSet) (refused int) {
	t.Helper()
	for _, opts := range []gates.Gates{{}, allGates} {
		if len(validation.ValidateJobSetCreate(prev, opts)) > 0 {
			refused++
		}
		validation.ValidateJobSetUpdate(next, prev, opts)
		validation.ValidateJobSetStatusUpdate(next, prev, opts)
		if errs := validation.ValidateJobSetUpdate(prev.DeepCopy(), prev, opts); len(errs) > 0 {
			t.Fatalf("refused unchanged: %v", errs.ToAggregate())
		}
		if errs := validation.ValidateJobSetStatusUpdate(prev.DeepCopy(), prev, opts); len(errs) > 0 {
			t.Fatalf("status refused unchanged: %v", errs.ToAggregate())
		}
	}
	return refused
}
