// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/x509"
	"net/http"
	"slices"
)

// Callers decides who may ask, and who is known.
type Callers struct {
	// Authorities are the authorities of client certificates; ok is false as long as there are none. A caller with a
	// certificate that they have signed has a share of its own.
	Authorities func() (options x509.VerifyOptions, ok bool)
	// Names are the common names of the only certificates that may ask. When empty, anybody may.
	Names []string
}

// known returns whether the caller has a certificate that counts, and whether it may ask.
func (c *Callers) known(req *http.Request) (known, allowed bool) {
	open := len(c.Names) == 0
	if c.Authorities == nil || req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return false, open
	}
	leaf := req.TLS.PeerCertificates[0]
	if !open && !slices.Contains(c.Names, leaf.Subject.CommonName) {
		return false, false
	}
	options, ok := c.Authorities()
	if !ok {
		return false, open
	}
	if options.Intermediates == nil && len(req.TLS.PeerCertificates) > 1 {
		options.Intermediates = x509.NewCertPool()
		for _, intermediate := range req.TLS.PeerCertificates[1:] {
			options.Intermediates.AddCert(intermediate)
		}
	}
	if _, err := leaf.Verify(options); err != nil {
		return false, open
	}
	return true, true
}
