// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

func TestControllerGates(t *testing.T) {
	want := map[string]bool{"ElasticJobSet": true, "RestartJob": false}
	labels := ControllerGateLabels(want)
	labels["team"], labels[controllerGatePrefix+"Broken"] = "true", "maybe"
	if diff := cmp.Diff(want, ControllerGates(labels)); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	if got := ControllerGates(nil); len(got) != 0 {
		t.Errorf("gates of a controller that publishes none: %v", got)
	}
}
