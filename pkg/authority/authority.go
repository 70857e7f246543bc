// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authority issues certificates for servers and clients, signed by a certificate authority.
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Pair is a certificate and its key. That of an authority issues others.
type Pair struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
}

// New returns an authority that signs itself. It is valid from config.NotBefore until the end.
func New(config certutil.Config, end time.Time) (*Pair, error) {
	template := newTemplate(config, end)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	return issue(template, nil)
}

// Issue returns a certificate that the authority signed, with a new key. It is valid from config.NotBefore until the end.
func (p *Pair) Issue(config certutil.Config, end time.Time) (*Pair, error) {
	return issue(newTemplate(config, end), p)
}

func newTemplate(config certutil.Config, end time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:  pkix.Name{CommonName: config.CommonName, Organization: config.Organization},
		DNSNames: config.AltNames.DNSNames, IPAddresses: config.AltNames.IPs,
		NotBefore: config.NotBefore, NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: config.Usages,
	}
}

// issue signs the template, by itself without an authority.
func issue(template *x509.Certificate, by *Pair) (*Pair, error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key for %s: %w", name, err)
	}
	if by == nil {
		by = &Pair{Certificate: template, Key: key}
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, fmt.Errorf("drawing a serial number for %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.Certificate, key.Public(), by.Key)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading back %s: %w", name, err)
	}
	return &Pair{Certificate: certificate, Key: key}, nil
}

// PEM encodes the certificate and the key.
func (p *Pair) PEM() (certificate, key []byte, err error) {
	if key, err = keyutil.MarshalPrivateKeyToPEM(p.Key); err != nil {
		return nil, nil, fmt.Errorf("encoding the key of %s: %w", p.Certificate.Subject.CommonName, err)
	}
	certificate, err = certutil.EncodeCertificates(p.Certificate)
	return certificate, key, err
}

// Parse returns the pair that PEM returned. Certificates after the first one are ignored. The error says which of both
// is damaged, or that they do not belong together.
func Parse(certificate, key []byte) (*Pair, error) {
	certificates, err := certutil.ParseCertsPEM(certificate)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("key cannot sign")
	}
	pair := &Pair{Certificate: certificates[0], Key: signer}
	if !pair.Holds(certificates[0]) {
		return nil, errors.New("key does not belong to the certificate")
	}
	return pair, nil
}

// Holds returns whether the key of the pair belongs to the certificate.
func (p *Pair) Holds(certificate *x509.Certificate) bool {
	public, ok := certificate.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(p.Key.Public())
}

// AltNames sorts names of a server into DNS names and IP addresses.
func AltNames(names []string) certutil.AltNames {
	var alt certutil.AltNames
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			alt.IPs = append(alt.IPs, ip)
		} else {
			alt.DNSNames = append(alt.DNSNames, name)
		}
	}
	return alt
}

// Covers returns whether the certificate is valid for all names.
func Covers(certificate *x509.Certificate, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return certificate.VerifyHostname(name) != nil })
}
