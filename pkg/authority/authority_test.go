// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

func TestIssue(t *testing.T) {
	now := time.Now()
	ca, err := authority.New(certutil.Config{CommonName: "ca", NotBefore: now}, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.Issue(certutil.Config{
		CommonName: "server", AltNames: certutil.AltNames{DNSNames: []string{"localhost"}}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: now,
	}, now.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Certificate)
	for name, tc := range map[string]struct {
		options x509.VerifyOptions
		valid   bool
	}{
		"the server":           {x509.VerifyOptions{DNSName: "localhost", CurrentTime: now.Add(time.Second)}, true},
		"another name":         {x509.VerifyOptions{DNSName: "example.com", CurrentTime: now.Add(time.Second)}, false},
		"after its end":        {x509.VerifyOptions{DNSName: "localhost", CurrentTime: now.Add(2 * time.Minute)}, false},
		"as a client":          {x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: now.Add(time.Second)}, false},
		"with other authority": {x509.VerifyOptions{Roots: x509.NewCertPool(), CurrentTime: now.Add(time.Second)}, false},
	} {
		if tc.options.Roots == nil {
			tc.options.Roots = roots
		}
		if _, err := server.Certificate.Verify(tc.options); (err == nil) != tc.valid {
			t.Errorf("%s: valid is %t: %v", name, err == nil, err)
		}
	}
	cert, key, err := server.PEM()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		t.Error(err)
	}
	if !ca.Certificate.IsCA || server.Certificate.IsCA {
		t.Error("only the authority may sign others")
	}
}
