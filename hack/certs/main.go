// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command certs writes the certificate authority and the client certificate with which kube-apiserver identifies
// itself to aggregated API servers. They are separate from the authority for users, so that no user's certificate
// can pass for the front proxy.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

const (
	// clientName is what kube-apiserver lists in --requestheader-allowed-names.
	clientName = "front-proxy-client"
	caName     = "front-proxy-ca"
	validity   = 10 * 365 * 24 * time.Hour
)

func main() {
	dir := flag.String("dir", "", "directory to write "+caName+".crt, "+clientName+".crt and "+clientName+".key to")
	flag.Parse()
	if err := run(*dir, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, "certs:", err)
		os.Exit(1)
	}
}

func run(dir string, now time.Time) error {
	if dir == "" {
		return errors.New("--dir is required: name the directory to write to")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the directory: %w", err)
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating the key of the authority: %w", err)
	}
	ca, err := issue(template(caName, now), nil, caKey.Public(), caKey)
	if err != nil {
		return fmt.Errorf("issuing the authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating the client key: %w", err)
	}
	client, err := issue(template(clientName, now), ca, key.Public(), caKey)
	if err != nil {
		return fmt.Errorf("issuing the client certificate: %w", err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding the client key: %w", err)
	}
	return errors.Join(
		write(dir, caName+".crt", "CERTIFICATE", ca.Raw, 0o644),
		write(dir, clientName+".crt", "CERTIFICATE", client.Raw, 0o644),
		write(dir, clientName+".key", "PRIVATE KEY", keyBytes, 0o600),
	)
}

func template(name string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name},
		// An hour of slack, so that a clock that is a little behind does not refuse a new certificate.
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(validity),
	}
}

// issue signs the template with the key of the parent; without a parent the result is an authority that signs itself.
func issue(tmpl, parent *x509.Certificate, pub crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	tmpl.SerialNumber = serial
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	if parent == nil {
		parent = tmpl
		tmpl.IsCA = true
		tmpl.BasicConstraintsValid = true
		tmpl.KeyUsage |= x509.KeyUsageCertSign
	} else {
		tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, pub, signer)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", tmpl.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

func write(dir, name, kind string, der []byte, mode os.FileMode) error {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, name), data, mode); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
