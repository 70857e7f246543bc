// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFeatureGatesAreSet(t *testing.T) {
	o, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	o.featureGates = map[string]string{"AllAlpha": "true", "ElasticJobSet": "false"}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{"RestartJob": o.gate.Enabled("RestartJob"), "ElasticJobSet": o.gate.Enabled("ElasticJobSet")}
	if d := cmp.Diff(map[string]bool{"RestartJob": true, "ElasticJobSet": false}, got); d != "" {
		t.Errorf("gates (-want +got):\n%s", d)
	}
}
