// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

func TestManagedCertFlags(t *testing.T) {
	const namespaceAndName = "jobset-system/jobset-apiserver-serving"
	for name, tc := range map[string]struct {
		secret, certFile, want string
		serving                time.Duration
	}{
		"no Secret":                {certFile: "tls.crt"},
		"a Secret":                 {secret: namespaceAndName},
		"a Secret and files":       {secret: namespaceAndName, certFile: "tls.crt", want: "--tls-managed-secret: must not be set together with --tls-cert-file: leave one of both out"},
		"a name without namespace": {secret: "serving", want: `--tls-managed-secret: "serving" must have the form namespace/name`},
		"no name":                  {secret: "jobset-system/", want: `--tls-managed-secret: "jobset-system/" must have the form namespace/name`},
		"too many parts":           {secret: "a/b/c", want: `--tls-managed-secret: "a/b/c" must have the form namespace/name`},
		"a lifetime that is too long": {secret: namespaceAndName, serving: 3 * 365 * 24 * time.Hour, want: "--tls-managed-certificate-duration: the serving certificate must be valid for at " +
			"least 10s, not 26280h0m0s, and the authority for at least five times as long, not 87600h0m0s: correct the durations"},
	} {
		t.Run(name, func(t *testing.T) {
			o := ManagedCertOptions{Secret: tc.secret, Policy: servingcert.DefaultPolicy}
			if tc.serving > 0 {
				o.Policy.Serving = tc.serving
			}
			got := ""
			if err := o.validate(tc.certFile); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestTargetsAreThoseOfServedGroups checks that a group whose gate is off has none.
func TestTargetsAreThoseOfServedGroups(t *testing.T) {
	gate, err := features.NewGate()
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{apiGroups: apigroups.All(), gate: gate}
	want := []string{
		"apiservices/v1alpha2.jobset.x-k8s.io", "apiservices/v1alpha1.batch.jobset-apiserver.io", "apiservices/v1.leaderworkerset.x-k8s.io",
		"mutatingwebhookconfigurations/jobset-apiserver-pods",
	}
	names := func() (names []string) {
		for _, target := range o.targets() {
			names = append(names, target.String())
		}
		return names
	}
	if diff := cmp.Diff(want, names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := gate.Set("DisaggregatedSet=true"); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 5 || got[3] != "apiservices/v1.disaggregatedset.x-k8s.io" {
		t.Errorf("with the gate: %v", got)
	}
}
