// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// RootsModule has the certificate authorities that Mozilla trusts for servers. The version and checksum in go.mod and go.sum decide
// which those are; the authorities of the machine that builds would make the image depend on the state of its packages.
const RootsModule = "golang.org/x/crypto/x509roots/fallback"

// rootsFile is the first place where Go and OpenSSL look for certificate authorities.
const rootsFile = "etc/ssl/certs/ca-certificates.crt"

// Roots returns the certificate authorities in PEM. An authority that is trusted under a condition only, for example for certificates
// that it issued before a certain day, is left out, because a file of certificates cannot state the condition.
func Roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		// Writing to a buffer does not fail.
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
	}
	return out.Bytes()
}
