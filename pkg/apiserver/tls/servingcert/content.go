// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

// Keys of the Secret.
const (
	// authoritiesKey has the certificates that clients must trust, that of the authority which signs first.
	authoritiesKey = corev1.ServiceAccountRootCAKey
	// authorityKeyKey has the key of the authority which signs.
	authorityKeyKey = "ca.key"
	// nextKeyKey has the key of the authority that is to sign next.
	nextKeyKey = "next-ca.key"
)

const (
	// authorityName begins the names of our authorities, by which they are recognized in a caBundle.
	authorityName = "jobset-apiserver-serving-ca@"
	// mostCertificates bounds how many certificates a bundle has. Those beyond it are ignored.
	mostCertificates = 16
)

// content is what a Secret says.
type content struct {
	// authorities are the certificates of the authorities that clients must trust.
	authorities []*x509.Certificate
	// signer signs serving certificates, and next does so later. Their certificates are among the authorities. Both may be nil.
	signer, next *authority.Pair
	// serving is nil if there is none that could be used.
	serving *authority.Pair
	// damaged are the keys of the Secret whose values could not be used.
	damaged []string
}

// parse reads the data of a Secret. What is damaged is left out.
func parse(data map[string][]byte) *content {
	c := &content{}
	var clean bool
	if c.authorities, clean = certificates(data[authoritiesKey]); !clean {
		c.damage(authoritiesKey)
	}
	if len(data[corev1.TLSCertKey])+len(data[corev1.TLSPrivateKeyKey]) > 0 {
		var err error
		if c.serving, err = authority.Parse(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]); err != nil {
			c.damage(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
		}
	}
	if len(c.authorities) == 0 && c.serving != nil {
		// The serving certificate is followed by that of its authority.
		chain, _ := certificates(data[corev1.TLSCertKey])
		c.authorities = slices.DeleteFunc(chain, func(cert *x509.Certificate) bool { return !cert.IsCA })
		c.damage(authoritiesKey)
	}
	c.signer = c.pair(data, authorityKeyKey)
	c.next = c.pair(data, nextKeyKey)
	if c.signer == nil && len(c.authorities) > 0 {
		c.damage(authorityKeyKey)
	}
	return c
}

func (c *content) damage(keys ...string) {
	for _, key := range keys {
		if !slices.Contains(c.damaged, key) {
			c.damaged = append(c.damaged, key)
		}
	}
}

// pair returns the authority to which the key belongs.
func (c *content) pair(data map[string][]byte, key string) *authority.Pair {
	if len(data[key]) == 0 {
		return nil
	}
	for _, cert := range c.authorities {
		if pair, err := authority.Parse(encode(cert), data[key]); err == nil {
			return pair
		}
	}
	c.damage(key)
	return nil
}

// data is the opposite of parse.
func (c *content) data() (map[string][]byte, error) {
	data := map[string][]byte{authoritiesKey: encode(c.authorities...)}
	for key, pair := range map[string]*authority.Pair{authorityKeyKey: c.signer, nextKeyKey: c.next, corev1.TLSPrivateKeyKey: c.serving} {
		if pair == nil {
			continue
		}
		encoded, err := keyutil.MarshalPrivateKeyToPEM(pair.Key)
		if err != nil {
			return nil, err
		}
		data[key] = encoded
	}
	if c.serving != nil {
		data[corev1.TLSCertKey] = encode(append([]*x509.Certificate{c.serving.Certificate}, c.issuers()...)...)
	}
	return data, nil
}

// issuers are the authorities that have signed the serving certificate.
func (c *content) issuers() []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(c.authorities), func(cert *x509.Certificate) bool {
		return c.serving.Certificate.CheckSignatureFrom(
			cert) != nil
	})
}

// usable returns whether clients that trust the authorities accept the serving certificate at that time for all names.
func (c *content) usable(now time.Time, names []string) bool {
	if c == nil || c.serving == nil || !authority.Covers(c.serving.Certificate, names) {
		return false
	}
	return trusts(c.authorities, c.serving.Certificate, now)
}

func trusts(authorities []*x509.Certificate, serving *x509.Certificate, now time.Time) bool {
	pool := x509.NewCertPool()
	for _, cert := range authorities {
		pool.AddCert(cert)
	}
	_, err := serving.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err == nil
}

// encode writes certificates as PEM.
func encode(certs ...*x509.Certificate) []byte {
	var b bytes.Buffer
	for _, cert := range certs {
		_ = pem.Encode(&b, &pem.Block{Type: certutil.CertificateBlockType, Bytes: cert.Raw}) // a buffer takes all
	}
	return b.Bytes()
}

// certificates returns the different certificates of a bundle, and whether there is nothing else in it.
func certificates(bundle []byte) (certs []*x509.Certificate, clean bool) {
	clean = true
	rest := bundle
	for len(bytes.TrimSpace(rest)) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return certs, false
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if block.Type != certutil.CertificateBlockType || err != nil {
			clean = false
			continue
		}
		if has(certs, cert) {
			continue
		}
		if len(certs) == mostCertificates {
			return certs, false
		}
		certs = append(certs, cert)
	}
	return certs, clean
}

func has(certs []*x509.Certificate, cert *x509.Certificate) bool {
	return slices.ContainsFunc(certs, cert.Equal)
}

// generated returns whether a server of some installation has made the authority.
func generated(cert *x509.Certificate) bool {
	return strings.HasPrefix(cert.Subject.CommonName, authorityName)
}

func valid(cert *x509.Certificate, now time.Time) bool {
	return !now.Before(cert.NotBefore) && now.Before(cert.NotAfter)
}
