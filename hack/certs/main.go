// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command certs writes the certificate authority and the client certificate with which kube-apiserver identifies
// itself to aggregated API servers. They are separate from the authority for users, so that no user's certificate
// can pass for the front proxy.
package main

import (
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
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
	// An hour of slack, so that a clock that is a little behind does not refuse a new certificate.
	begin, end := now.Add(-time.Hour), now.Add(validity)
	ca, err := authority.New(certutil.Config{CommonName: caName, NotBefore: begin}, end)
	if err != nil {
		return err
	}
	client, err := ca.Issue(certutil.Config{CommonName: clientName, NotBefore: begin, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		end)
	if err != nil {
		return err
	}
	caCert, _, err := ca.PEM()
	if err != nil {
		return err
	}
	cert, key, err := client.PEM()
	if err != nil {
		return err
	}
	return errors.Join(
		write(dir, caName+".crt", caCert, 0o644),
		write(dir, clientName+".crt", cert, 0o644),
		write(dir, clientName+".key", key, 0o600),
	)
}

func write(dir, name string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(filepath.Join(dir, name), data, mode); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
