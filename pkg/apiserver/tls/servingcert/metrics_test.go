// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

// TestExpirationIsThatOfTheCertificate checks the metric for the certificate that was shown last.
func TestExpirationIsThatOfTheCertificate(t *testing.T) {
	for _, left := range []time.Duration{time.Hour, -time.Hour} {
		end := time.Now().Add(left).Truncate(time.Second)
		pair, err := authority.New(certutil.Config{CommonName: "test", NotBefore: end.Add(-2 * time.Hour)}, end)
		if err != nil {
			t.Fatal(err)
		}
		certificate, key, err := pair.PEM()
		if err != nil {
			t.Fatal(err)
		}
		content, err := dynamiccertificates.NewStaticCertKeyContent("test", certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		Show(content)
		const name = "jobset_apiserver_serving_certificate_expiration_timestamp_seconds"
		want := fmt.Sprintf("# HELP %s [ALPHA] Time at which the certificate ends with which the server serves, in seconds since 1970. 0 if it cannot be read.\n# TYPE %s gauge\n%s %d\n",
			name, name, name, end.Unix())
		if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), name); err != nil {
			t.Error(err)
		}
	}
}
