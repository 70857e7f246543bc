// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Authority signs certificates for one test.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority returns an authority with the name.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	return &Authority{cert: cert, key: key}, err
}

// CA is the certificate of the authority.
func (a *Authority) CA() []byte { return encode(a.cert.Raw) }

// Client returns a pair for a client: the common name is the user, the organizations its groups.
func (a *Authority) Client(name string, groups ...string) (cert, key []byte, err error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Server returns a pair for a server on this machine that also is a client, as members of etcd are.
func (a *Authority) Server(dnsNames ...string) (cert, key []byte, err error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "server"},
		DNSNames:    append([]string{"localhost"}, dnsNames...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

func (a *Authority) sign(template *x509.Certificate) (cert, key []byte, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, nil, err
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, signer.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(signer)
	return encode(der), key, err
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

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})
}
