// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"
	"testing"

	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

func TestRuntimeConfig(t *testing.T) {
	const on, othersOff = "jobset.x-k8s.io/v1alpha2=true", ",batch.jobset-apiserver.io/v1alpha1=false,leaderworkerset.x-k8s.io/v1=false,archive.jobset-apiserver.io/v1alpha1=false"
	cases := map[string]struct{ flag, want string }{
		"nothing":                         {"", ""},
		"a version that is on":            {on, ""},
		"all but one":                     {"api/all=false," + on, ""},
		"everything off":                  {"api/all=false", "invalid runtime-config with only api/all=false"},
		"every stage off":                 {"api/alpha=false,api/ga=false", "must leave a resource on"},
		"every version off":               {"jobset.x-k8s.io/v1alpha2=false" + othersOff, "must leave a resource on"},
		"every resource off":              {"jobset.x-k8s.io/v1alpha2/jobsets=false" + othersOff, "must leave a resource on"},
		"one group off":                   {"jobset.x-k8s.io/v1alpha2=false", ""},
		"one resource off":                {"batch.jobset-apiserver.io/v1alpha1/podreadinessgroups=false", ""},
		"a group without a store in etcd": {"archive.jobset-apiserver.io/v1alpha1/runs=false", ""},
		"a group of the library":          {"autoscaling/v1=false", "unknown api groups autoscaling/v1"},
		"a group without its gate":        {"disaggregatedset.x-k8s.io/v1=true", "must not switch on disaggregatedset.x-k8s.io/v1 while its feature gate is off: use --feature-gates=DisaggregatedSet=true"},
		"an unknown version":              {"jobset.x-k8s.io/v1=true", "jobset.x-k8s.io/v1 that has not been registered"},
		"an unknown resource":             {"jobset.x-k8s.io/v1alpha2/jobs=false", "unknown resource jobset.x-k8s.io/v1alpha2/jobs"},
		"a key without a version":         {"jobset.x-k8s.io=false", "invalid key jobset.x-k8s.io"},
		"a value that is no state":        {"jobset.x-k8s.io/v1alpha2=off", "invalid value of jobset.x-k8s.io/v1alpha2: off"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gate, err := features.NewGate()
			if err != nil {
				t.Fatal(err)
			}
			o := &Options{APIEnablement: genericoptions.NewAPIEnablementOptions(), APIGroups: apigroups.All(), Gate: gate}
			if err := o.APIEnablement.RuntimeConfig.Set(tc.flag); tc.flag != "" && err != nil {
				t.Fatal(err)
			}
			err = o.validateRuntimeConfig()
			if tc.want == "" && err == nil {
				return
			}
			if tc.want == "" || err == nil || !strings.HasPrefix(err.Error(), "--runtime-config: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
