// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/minio/minio-go/v7"
)

// explain says what to do about an error of a request that needs a permission.
func (b *Bucket) explain(err error, permission string) error {
	response := minio.ToErrorResponse(err)
	switch response.Code {
	case minio.NoSuchBucket:
		return fmt.Errorf("the bucket %q does not exist at %s: create it, or name another one", b.Bucket, b.endpoint)
	case minio.NoSuchKey:
		return errors.New("there is no such object")
	case minio.AccessDenied:
		return fmt.Errorf("access is denied: the credentials from %s need the permission %s", b.from, permission)
	case minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch, "ExpiredToken", "InvalidToken":
		return fmt.Errorf("%s does not accept the credentials from %s: %s", b.endpoint, b.from, response.Message)
	case "AuthorizationHeaderMalformed", minio.InvalidRegion, "PermanentRedirect":
		if response.Region != "" {
			return fmt.Errorf("--s3-region: must be %s, the region of the bucket", response.Region)
		}
		return fmt.Errorf("--s3-region: must be the region of the bucket: %s", response.Message)
	case "RequestTimeTooSkewed":
		return fmt.Errorf("the clock of this machine and that of %s differ too much", b.endpoint)
	}
	return b.explainConnection(err)
}

func (b *Bucket) explainConnection(err error) error {
	var certificate *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var operation *net.OpError
	switch {
	case errors.As(err, &hostname):
		return fmt.Errorf("--s3-endpoint: the certificate of %s is for another name: %w", b.endpoint, hostname)
	case errors.As(err, &certificate), errors.As(err, &unknown):
		return fmt.Errorf("--s3-ca-file: must have the authority of the certificate of %s: %w", b.endpoint, err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("--s3-endpoint: %s answers without TLS: the address must begin with http:// or have another port", b.endpoint)
	case errors.As(err, &operation) && operation.Op == "dial":
		return fmt.Errorf("--s3-endpoint: %s cannot be reached: %w", b.endpoint, err)
	}
	return err
}
