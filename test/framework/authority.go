// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

// Authority signs certificates for one test.
type Authority struct {
	pair *authority.Pair
	pem  []byte
}

// NewAuthority returns an authority with the name.
func NewAuthority(name string) (*Authority, error) {
	begin, end := validity()
	pair, err := authority.New(certutil.Config{CommonName: name, NotBefore: begin}, end)
	if err != nil {
		return nil, err
	}
	cert, _, err := pair.PEM()
	return &Authority{pair: pair, pem: cert}, err
}

// validity is the validity of all certificates of tests.
func validity() (begin, end time.Time) {
	return time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
}

// CA is the certificate of the authority.
func (a *Authority) CA() []byte { return a.pem }

// Client returns a pair for a client: the common name is the user, the organizations its groups.
func (a *Authority) Client(name string, groups ...string) (cert, key []byte, err error) {
	return a.sign(certutil.Config{CommonName: name, Organization: groups, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// Server returns a pair for a server on this machine that also is a client, as members of etcd are.
func (a *Authority) Server(dnsNames ...string) (cert, key []byte, err error) {
	return a.sign(certutil.Config{
		CommonName: "server",
		AltNames:   certutil.AltNames{DNSNames: append([]string{"localhost"}, dnsNames...), IPs: []net.IP{net.IPv4(127, 0, 0, 1)}},
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

func (a *Authority) sign(config certutil.Config) (cert, key []byte, err error) {
	begin, end := validity()
	config.NotBefore = begin
	pair, err := a.pair.Issue(config, end)
	if err != nil {
		return nil, nil, err
	}
	return pair.PEM()
}

// WriteClient writes the authority's certificate and a pair for the client into the directory.
func (a *Authority) WriteClient(dir, name string, groups ...string) (caFile, certFile, keyFile string, err error) {
	cert, key, err := a.Client(name, groups...)
	if err != nil {
		return "", "", "", err
	}
	return a.write(dir, "client", cert, key)
}

// WriteServer writes the authority's certificate and a pair for a server into the directory.
func (a *Authority) WriteServer(dir string, dnsNames ...string) (caFile, certFile, keyFile string, err error) {
	cert, key, err := a.Server(dnsNames...)
	if err != nil {
		return "", "", "", err
	}
	return a.write(dir, "server", cert, key)
}

func (a *Authority) write(dir, pair string, cert, key []byte) (caFile, certFile, keyFile string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", "", err
	}
	caFile, certFile, keyFile = filepath.Join(dir, "ca.crt"), filepath.Join(dir, pair+".crt"), filepath.Join(dir, pair+".key")
	for path, content := range map[string][]byte{caFile: a.CA(), certFile: cert, keyFile: key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return "", "", "", err
		}
	}
	return caFile, certFile, keyFile, nil
}
