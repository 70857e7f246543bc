// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

const (
	// amazon is the endpoint of the service that the protocol comes from.
	amazon = "https://s3.amazonaws.com"
	// anyRegion is what services without regions expect.
	anyRegion = "us-east-1"
	// attempts bounds how often a request is sent, with up to a second between two.
	attempts = 5
)

// Options say how an object storage is reached.
type Options struct {
	// Endpoint is the address of the service; empty for the environment, and else Amazon's.
	Endpoint string
	// Region is the region of the bucket; empty for the environment, and else the one that the service reports.
	Region string
	// PathStyle says whether the name of the bucket is part of the path of a request and not of the host. Unset, the service decides.
	PathStyle cliflag.Tristate
	// CAFile has the authorities that certificates of the service are checked with, in PEM; empty for those of the system.
	CAFile string
	// CredentialsFile is a credentials file as the AWS command line writes it.
	CredentialsFile string
	// CredentialsDir has a file for each credential, as a mounted Secret has.
	CredentialsDir string
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Endpoint, "s3-endpoint", o.Endpoint, "Address of the object storage (https://host:port). Without it, that of the "+
		"environment (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL), or else that of Amazon S3.")
	fs.StringVar(&o.Region, "s3-region", o.Region, "Region of the bucket. Without it, that of the environment (AWS_REGION, "+
		"AWS_DEFAULT_REGION), or else the one that Amazon S3 reports; other services get us-east-1.")
	fs.Var(&o.PathStyle, "s3-path-style", "Put the name of the bucket into the path of requests (true) or into the name of the host (false). "+
		"Without it, into the name of the host for Amazon, Google and Alibaba, and into the path for other services.")
	pathStyle := fs.Lookup("s3-path-style")
	pathStyle.NoOptDefVal, pathStyle.DefValue = "true", "" // unset is neither
	fs.StringVar(&o.CAFile, "s3-ca-file", o.CAFile, "File with the authorities of the certificate of the object storage, instead of those of "+
		"the system.")
	fs.StringVar(&o.CredentialsFile, "s3-credentials-file", o.CredentialsFile, "File with credentials as the AWS command line keeps them, "+
		"with the profile of AWS_PROFILE. Without this flag and --s3-credentials-dir, they come from the environment: AWS_ACCESS_KEY_ID and "+
		"AWS_SECRET_ACCESS_KEY, a web identity, or the metadata of the node.")
	fs.StringVar(&o.CredentialsDir, "s3-credentials-dir", o.CredentialsDir, "Directory with the files AWS_ACCESS_KEY_ID, "+
		"AWS_SECRET_ACCESS_KEY and, if there is one, AWS_SESSION_TOKEN, such as a mounted Secret.")
}

// Set returns whether a flag is set.
func (o *Options) Set() bool { return *o != Options{} }

// Validate checks what can be checked without the service.
func (o *Options) Validate() error {
	if o.CredentialsFile != "" && o.CredentialsDir != "" {
		return errors.New("--s3-credentials-file: must not be set together with --s3-credentials-dir: remove one of them")
	}
	_, err := o.endpoint()
	return err
}

func (o *Options) endpoint() (*url.URL, error) {
	address := cmp.Or(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), amazon)
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("--s3-endpoint: %w", err)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || len(u.Path) > 1 || u.RawQuery+u.Fragment != "" {
		return nil, fmt.Errorf("--s3-endpoint: must be https://HOST or https://HOST:PORT, not %q", u.Redacted())
	}
	return u, nil
}

// Open returns the place in a bucket. Nothing is asked of the service yet, but credentials are read.
func (o *Options) Open(ctx context.Context, place Place) (*Bucket, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	endpoint, err := o.endpoint()
	if err != nil {
		return nil, err
	}
	transport, err := o.transport()
	if err != nil {
		return nil, err
	}
	found, err := o.credentials(ctx, transport)
	if err != nil {
		return nil, err
	}
	region := cmp.Or(o.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if region == "" && !s3utils.IsAmazonEndpoint(*endpoint) {
		region = anyRegion
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: found.Credentials, Secure: endpoint.Scheme == "https", Transport: transport, Region: region, BucketLookup: o.lookup(),
		MaxRetries: attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("--s3-endpoint: %w", err)
	}
	return &Bucket{Place: place, client: client, endpoint: endpoint.Scheme + "://" + endpoint.Host, from: found.from}, nil
}

func (o *Options) lookup() minio.BucketLookupType {
	switch o.PathStyle {
	case cliflag.True:
		return minio.BucketLookupPath
	case cliflag.False:
		return minio.BucketLookupDNS
	}
	return minio.BucketLookupAuto
}

func (o *Options) transport() (*http.Transport, error) {
	const secure = true
	transport, err := minio.DefaultTransport(secure)
	if err != nil || o.CAFile == "" {
		return transport, err
	}
	authorities, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("--s3-ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("--s3-ca-file: %s must have certificates in PEM", o.CAFile)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}
