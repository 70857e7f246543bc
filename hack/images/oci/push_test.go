// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
)

// TestPlainHTTP checks which registries are asked without TLS: those of this machine, and others on request.
func TestPlainHTTP(t *testing.T) {
	tests := map[string]struct {
		registry Registry
		want     string
	}{
		"a registry":                     {Registry{Prefix: "registry.example.com:5000"}, "https"},
		"a registry on this machine":     {Registry{Prefix: "127.0.0.1:5000"}, "http"},
		"a registry for which it is set": {Registry{Prefix: "registry.example.com:5000", PlainHTTP: true}, "http"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			tag, err := name.NewTag(test.registry.Prefix+"/tiny:v1.2.3", test.registry.options()...)
			if err != nil {
				t.Fatal(err)
			}
			if got := tag.Scheme(); got != test.want {
				t.Errorf("scheme is %s, want %s", got, test.want)
			}
		})
	}
}
