// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import "testing"

func TestControllerVersion(t *testing.T) {
	for identity, want := range map[string]string{
		ControllerIdentity("manager-x2", "1b4e28ba", "v0.1.0-dev+abc"): "v0.1.0-dev+abc",
		"manager-x2_1b4e28ba": "", // upstream's controller
		"":                    "",
	} {
		if got := ControllerVersion(identity); got != want {
			t.Errorf("%q: got %q, want %q", identity, got, want)
		}
	}
}
