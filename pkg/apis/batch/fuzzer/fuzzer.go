// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills requests that act on JobSets with random values for round-trip tests. Values are such that decoding
// adds no default.
package fuzzer

import (
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// Funcs returns the filling functions of the internal and of the versioned types.
func Funcs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(s *batch.JobSetRestartSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			if s.Scope == "" {
				s.Scope = batch.RestartScopeJobSet
			}
		},
		func(s *v1alpha1.JobSetRestartSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			if s.Scope == "" {
				s.Scope = v1alpha1.RestartScopeJobSet
			}
		},
	}
}
