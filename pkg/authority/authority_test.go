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

func TestParse(t *testing.T) {
	now := time.Now()
	var certs, keys [2][]byte
	for i := range certs {
		pair, err := authority.New(certutil.Config{CommonName: "ca", NotBefore: now}, now.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if certs[i], keys[i], err = pair.PEM(); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		cert, key []byte
		want      string
	}{
		"a pair":                {certs[0], keys[0], ""},
		"a pair with a chain":   {append(append([]byte{}, certs[0]...), certs[1]...), keys[0], ""},
		"the key of another":    {certs[0], keys[1], "key does not belong to the certificate"},
		"no key":                {certs[0], nil, "key: data does not contain a valid RSA or ECDSA private key"},
		"no certificate":        {nil, keys[0], "certificate: data does not contain any valid RSA or ECDSA certificates"},
		"a certificate as key":  {certs[0], certs[0], "key: data does not contain a valid RSA or ECDSA private key"},
		"garbage as everything": {[]byte("garbage"), []byte("garbage"), "certificate: data does not contain any valid RSA or ECDSA certificates"},
	} {
		t.Run(name, func(t *testing.T) {
			pair, err := authority.Parse(tc.cert, tc.key)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want || err == nil && pair.Certificate == nil {
				t.Errorf("error is %q, must be %q", got, tc.want)
			}
		})
	}
}
