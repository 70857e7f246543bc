// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

const (
	// MinVersion is the first release that answers progress requests of the watch cache correctly.
	MinVersion = "3.5.13"
	// startTimeout bounds how long a command waits for an etcd. The server waits as long as it takes.
	startTimeout  = 12 * time.Second
	AnswerTimeout = 4 * time.Second
	pause         = 500 * time.Millisecond
	// refusalTimeout is how long a member has to refuse a client certificate.
	refusalTimeout = 500 * time.Millisecond
)

// Check makes sure that a member of the cluster answers and that every member that answers is new enough. A member
// may be down: that is what a cluster is for.
func Check(ctx context.Context, config storagebackend.TransportConfig) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return Await(ctx, config, func(error) {})
}

// Await is Check without a bound on the time. Each failure is reported.
func Await(ctx context.Context, config storagebackend.TransportConfig, report func(error)) error {
	tlsConfig, err := CheckedTLS(config)
	if err != nil {
		return err
	}
	for {
		errs := checkMembers(ctx, config.ServerList, tlsConfig)
		failure := errs[0]
		for i, err := range errs {
			var fatal *fatalError
			switch {
			case errors.As(err, &fatal):
				return fatal.error
			case err == nil:
				failure = nil
			default:
				klog.FromContext(ctx).V(1).Info("Member of etcd does not answer", "member", config.ServerList[i], "err", err)
			}
		}
		if failure == nil {
			return nil
		}
		report(failure)
		select {
		case <-ctx.Done():
			return failure
		case <-time.After(pause):
		}
	}
}

// fatalError is one that waiting does not cure.
type fatalError struct{ error }

// CheckedTLS returns the settings of TLS as the etcd client makes them of the files. That one takes a file without
// certificates for no authority.
func CheckedTLS(config storagebackend.TransportConfig) (*tls.Config, error) {
	if config.TrustedCAFile != "" {
		if _, err := certutil.NewPool(config.TrustedCAFile); err != nil {
			return nil, flagerror.Wrap("etcd-cafile", err, "use a PEM file with certificates")
		}
	}
	info := transport.TLSInfo{TrustedCAFile: config.TrustedCAFile, CertFile: config.CertFile, KeyFile: config.KeyFile}
	tlsConfig, err := info.ClientConfig()
	return tlsConfig, flagerror.Wrap("etcd-certfile", err, "use a PEM file, and in --etcd-keyfile its key")
}

func checkMembers(ctx context.Context, servers []string, tlsConfig *tls.Config) []error {
	errs := make([]error, len(servers))
	done := make(chan struct{})
	for i, server := range servers {
		go func() {
			errs[i] = checkMember(ctx, server, tlsConfig)
			done <- struct{}{}
		}()
	}
	for range servers {
		<-done
	}
	return errs
}

func checkMember(ctx context.Context, server string, tlsConfig *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, AnswerTimeout)
	defer cancel()
	if err := checkConnection(ctx, server, tlsConfig); err != nil {
		return err
	}
	config := clientv3.Config{Endpoints: []string{server}, DialTimeout: AnswerTimeout, Context: ctx, Logger: zap.NewNop()}
	if u, _ := url.Parse(server); u.Scheme == "https" {
		config.TLS = tlsConfig
	}
	client, err := clientv3.New(config)
	if err != nil {
		return flagerror.Wrap("etcd-servers", err, "give addresses as scheme://host:port")
	}
	defer client.Close()
	status, err := client.Status(ctx, server)
	if err != nil {
		return flagerror.New("etcd-servers", "asking %s for its version: %w: make sure that this is an etcd and that it accepts --etcd-certfile",
			server, err)
	}
	running, err := version.ParseSemantic(status.Version)
	if err != nil || running.LessThan(version.MustParseSemantic(MinVersion)) {
		return &fatalError{flagerror.New("etcd-servers", "%s runs etcd %s, which is too old: upgrade it to %s or newer", server, status.Version,
			MinVersion)}
	}
	return nil
}

// checkConnection connects without the etcd client, whose errors do not distinguish a refused connection from a wrong
// certificate.
func checkConnection(ctx context.Context, server string, tlsConfig *tls.Config) error {
	u, err := url.Parse(server)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Port() == "" {
		return &fatalError{flagerror.New("etcd-servers", "%q is not an address: give it as http://host:port or https://host:port", server)}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return flagerror.New("etcd-servers", "cannot connect to %s: %w: start etcd or correct the address", server, err)
	}
	defer conn.Close()
	if u.Scheme != "https" {
		return nil
	}
	tlsConfig = tlsConfig.Clone()
	if tlsConfig.ServerName == "" {
		tlsConfig.ServerName = u.Hostname()
	}
	secure := tls.Client(conn, tlsConfig)
	err = secure.HandshakeContext(ctx)
	var verification *tls.CertificateVerificationError
	switch {
	case err == nil:
		return checkClientCertificate(secure, server)
	case errors.As(err, new(x509.HostnameError)):
		return &fatalError{flagerror.New("etcd-servers", "certificate of %s: %w: use a name that its certificate has", server, err)}
	case errors.As(err, &verification):
		return &fatalError{flagerror.New("etcd-cafile", "certificate of %s: %w: give the authority that signed it", server, err)}
	default:
		return flagerror.New("etcd-servers", "TLS with %s: %w: make sure that it serves https", server, err)
	}
}

// checkClientCertificate waits for the server's refusal of our certificate, which comes after our side of the handshake.
func checkClientCertificate(conn *tls.Conn, server string) error {
	if err := conn.SetReadDeadline(time.Now().Add(refusalTimeout)); err != nil {
		return flagerror.New("etcd-servers", "TLS with %s: %w", server, err)
	}
	_, err := conn.Read(make([]byte, 1))
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Op == "remote error" { // how crypto/tls names an alert of the other side
		return &fatalError{flagerror.New("etcd-certfile", "%s refuses it: %w: give a certificate, and in --etcd-keyfile its key, that this etcd "+
			"accepts", server, err)}
	}
	return nil
}
