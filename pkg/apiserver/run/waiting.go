// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	certutil "k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/startup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// startWaiting answers on the port until the server serves: pods are completed from then on.
func (r *run) startWaiting(listener net.Listener) (*startup.Server, error) {
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("listening on %s: the listener is a %T", listener.Addr(), listener)
	}
	config, err := r.waitingTLS()
	if err != nil {
		return nil, err
	}
	s := startup.Start(tcp, config, func(next http.Handler) http.Handler { return r.pods.handler(next, r.PodWebhookClientNames) })
	r.Recommended.SecureServing.Listener = s.Listener()
	return s, nil
}

// waitingTLS has the certificate of the server, if it is there: from its files, or from the Secret, once it was read. Until then it has a
// temporary certificate. The kubelet does not verify it. kube-apiserver refuses it, as it would refuse a server that is away.
func (r *run) waitingTLS() (*tls.Config, error) {
	serving := r.Recommended.SecureServing
	minimum, err := cliflag.TLSVersion(serving.MinTLSVersion)
	if err != nil {
		return nil, flagerror.Wrap("tls-min-version", err, "correct the version")
	}
	ciphers, err := cliflag.TLSCipherSuites(serving.CipherSuites)
	if err != nil {
		return nil, flagerror.Wrap("tls-cipher-suites", err, "correct the list")
	}
	var current func() (tls.Certificate, error)
	if files := serving.ServerCert.CertKey; files.CertFile != "" {
		current = func() (tls.Certificate, error) { return tls.LoadX509KeyPair(files.CertFile, files.KeyFile) }
	} else if current, err = r.managedOrTemporary(); err != nil {
		return nil, err
	}
	if _, err := current(); err != nil {
		return nil, flagerror.Wrap("tls-cert-file", err, "give a certificate and in --tls-private-key-file its key, both PEM")
	}
	return &tls.Config{
		MinVersion: minimum, CipherSuites: ciphers, ClientAuth: tls.RequestClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := current()
			return &pair, err
		},
	}, nil
}

func (r *run) managedOrTemporary() (func() (tls.Certificate, error), error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey(options.ComponentName, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making a temporary certificate: %w", err)
	}
	temporary, err := tls.X509KeyPair(cert, key)
	return func() (tls.Certificate, error) {
		if manager := r.manager.Load(); manager != nil {
			if cert, key := manager.CurrentCertKeyContent(); len(cert) > 0 {
				return tls.X509KeyPair(cert, key)
			}
		}
		return temporary, nil
	}, err
}
