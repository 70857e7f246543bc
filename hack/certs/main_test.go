// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestClientCertificateIsTrustedForClientsOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	now := time.Now()
	if err := run(dir, now); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, clientName+".crt"), filepath.Join(dir, clientName+".key"))
	if err != nil {
		t.Fatal(err)
	}
	caPEM, err := os.ReadFile(filepath.Join(dir, caName+".crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(caPEM) {
		t.Fatal("the authority is not a certificate")
	}
	if diff := cmp.Diff(clientName, pair.Leaf.Subject.CommonName); diff != "" {
		t.Errorf("common name (-want +got):\n%s", diff)
	}
	tests := map[string]struct {
		usage       x509.ExtKeyUsage
		at          time.Time
		wantTrusted bool
	}{
		"a client is trusted":              {usage: x509.ExtKeyUsageClientAuth, at: now, wantTrusted: true},
		"a server is not trusted":          {usage: x509.ExtKeyUsageServerAuth, at: now},
		"a client is not trusted for ever": {usage: x509.ExtKeyUsageClientAuth, at: now.Add(validity + time.Hour)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := pair.Leaf.Verify(x509.VerifyOptions{
				Roots: roots, CurrentTime: tc.at, KeyUsages: []x509.ExtKeyUsage{tc.usage},
			})
			if diff := cmp.Diff(tc.wantTrusted, err == nil); diff != "" {
				t.Errorf("trusted (-want +got):\n%s\nerror: %v", diff, err)
			}
		})
	}
}

func TestKeyIsReadableByItsOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, clientName+".key"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(os.FileMode(0o600), info.Mode().Perm()); diff != "" {
		t.Errorf("mode of the key (-want +got):\n%s", diff)
	}
}

func TestMissingDirectoryIsNamed(t *testing.T) {
	err := run("", time.Now())
	if err == nil {
		t.Fatal("want an error without --dir")
	}
	if diff := cmp.Diff("--dir is required: name the directory to write to", err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
