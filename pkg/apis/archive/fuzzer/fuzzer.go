// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills Runs with random values for round-trip tests.
package fuzzer

import (
	"k8s.io/apimachinery/pkg/runtime"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
)

// Funcs returns the filling functions of the internal and of the versioned types.
func Funcs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(d *archive.RunDetails, _ randfill.Continue) {
			d.Spec, d.Status = runtime.RawExtension{Raw: []byte(`{"suspend":true}`)}, runtime.RawExtension{Raw: []byte(`{"restarts":1}`)}
		},
		func(d *v1alpha1.RunDetails, _ randfill.Continue) {
			d.Spec, d.Status = runtime.RawExtension{Raw: []byte(`{"suspend":true}`)}, runtime.RawExtension{Raw: []byte(`{"restarts":1}`)}
		},
	}
}
