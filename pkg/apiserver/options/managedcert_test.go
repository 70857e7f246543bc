// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
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
