// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Without a route, kube-apiserver finds no address to advertise, and ends. So it gets one in every cluster.
func TestKubeAPIServerNeedsNoRoute(t *testing.T) {
	for name, test := range map[string]struct {
		nodes int
		want  map[string]string
	}{
		"a cluster without real nodes": {want: map[string]string{"advertise-address": "127.0.0.1", "endpoint-reconciler-type": "none"}},
		"a cluster with real nodes":    {nodes: 2, want: map[string]string{"advertise-address": "10.99.0.1", "bind-address": "0.0.0.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := gated(t.TempDir(), "")
			if err != nil {
				t.Fatal(err)
			}
			s.realNodes = test.nodes
			content, err := (&supervisor{settings: s, network: &network{}}).kwokConfig()
			if err != nil {
				t.Fatal(err)
			}
			var config struct {
				ComponentsPatches []struct {
					Name      string
					ExtraArgs []struct{ Key, Value string }
				}
			}
			if err := yaml.Unmarshal([]byte(content), &config); err != nil {
				t.Fatalf("%v\n%s", err, content)
			}
			got := map[string]string{}
			for _, patch := range config.ComponentsPatches {
				for _, arg := range patch.ExtraArgs {
					switch arg.Key {
					case "advertise-address", "endpoint-reconciler-type", "bind-address":
						got[arg.Key] = arg.Value
					}
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}
