// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills DisaggregatedSets and their scalers with random values for round-trip tests. Values are such that decoding adds no
// default. Embedded templates stay small, as those of LeaderWorkerSets do.
package fuzzer

import (
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	v1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	lwsfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/fuzzer"
)

// Funcs returns the filling functions of the internal and of the versioned types.
func Funcs(codecs runtimeserializer.CodecFactory) []any {
	return append(lwsfuzzer.Funcs(codecs), append(internal(), versioned()...)...)
}

func internal() []any {
	return []any{
		func(s *disaggregatedset.DisaggregatedSetSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			if s.Slices == nil {
				s.Slices = ptr.To[int32](1)
			}
		},
		func(s *disaggregatedset.RoleScaling, c randfill.Continue) {
			s.Mode = choose(c, disaggregatedset.RoleScalingStatic, disaggregatedset.RoleScalingExternal)
		},
		func(p *disaggregatedset.PlacementPolicy, c randfill.Continue) {
			c.FillNoCustom(p)
			p.Type = choose(c, disaggregatedset.PlacementNone, disaggregatedset.PlacementExclusiveSlice, disaggregatedset.PlacementExclusiveTopology)
		},
	}
}

func versioned() []any {
	return []any{
		func(s *v1.DisaggregatedSetSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			if s.Slices == nil {
				s.Slices = ptr.To[int32](1)
			}
		},
		func(s *v1.RoleScaling, c randfill.Continue) {
			s.Mode = choose(c, v1.RoleScalingStatic, v1.RoleScalingExternal)
		},
		func(p *v1.PlacementPolicy, c randfill.Continue) {
			c.FillNoCustom(p)
			p.Type = choose(c, v1.PlacementNone, v1.PlacementExclusiveSlice, v1.PlacementExclusiveTopology)
		},
	}
}

func choose[T any](c randfill.Continue, values ...T) T { return values[c.Intn(len(values))] }
