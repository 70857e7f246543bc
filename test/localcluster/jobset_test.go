// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDiscovered(t *testing.T) {
	group := schema.GroupVersion{Group: "jobset.x-k8s.io", Version: "v1alpha2"}
	current := apidiscoveryv2.APIVersionDiscovery{
		Version: group.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Resources: []apidiscoveryv2.APIResourceDiscovery{{Resource: "jobsets"}},
	}
	stale, other, empty := current, current, current
	stale.Freshness, other.Version, empty.Resources = apidiscoveryv2.DiscoveryFreshnessStale, "v1", nil
	for name, tc := range map[string]struct {
		group    string
		versions []apidiscoveryv2.APIVersionDiscovery
		want     bool
	}{
		"another group":     {"apps", []apidiscoveryv2.APIVersionDiscovery{current}, false},
		"another version":   {group.Group, []apidiscoveryv2.APIVersionDiscovery{other}, false},
		"of a server away":  {group.Group, []apidiscoveryv2.APIVersionDiscovery{stale}, false},
		"without resources": {group.Group, []apidiscoveryv2.APIVersionDiscovery{empty}, false},
		"served":            {group.Group, []apidiscoveryv2.APIVersionDiscovery{other, current}, true},
	} {
		groups := &apidiscoveryv2.APIGroupDiscoveryList{Items: []apidiscoveryv2.APIGroupDiscovery{{ObjectMeta: metav1.ObjectMeta{Name: tc.group}, Versions: tc.versions}}}
		if err := discovered(groups, group); (err == nil) != tc.want {
			t.Errorf("%s: %v, want discovered %t", name, err, tc.want)
		}
	}
}
