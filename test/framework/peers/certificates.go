// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"net"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

const (
	// keyBits is the size of the key of the authority, which has to be one of RSA: the library that controllers renew
	// certificates with reads no others.
	keyBits = 2048
	// lifetime is the lifetime of the certificate. That library renews certificates 90 days before the end.
	lifetime = 365 * 24 * time.Hour
)

// issue issues a certificate for a Service and for this machine, and returns it as the Secret of a controller has it.
func issue(ca, service string) (map[string][]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: ca}, key)
	if err != nil {
		return nil, err
	}
	signer := &authority.Pair{Certificate: certificate, Key: key}
	serving, err := signer.Issue(certutil.Config{
		CommonName: service, AltNames: certutil.AltNames{DNSNames: []string{service}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}},
		NotBefore: time.Now().Add(-time.Minute), Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, time.Now().Add(lifetime))
	if err != nil {
		return nil, err
	}
	secret := map[string][]byte{}
	if secret["ca.crt"], secret["ca.key"], err = signer.PEM(); err != nil {
		return nil, err
	}
	secret["tls.crt"], secret["tls.key"], err = serving.PEM()
	return secret, err
}
